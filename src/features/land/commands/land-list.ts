import type { Command } from "../../../cli/grammar/command";
import { columns } from "../../../cli/terminal/render";
import { printable } from "../../../kernel/ids";
import { branchName } from "../../publish/branch-rules";
import { type LandEntry, queueOf, queuePauseOf, targetRef } from "../operations";
import { asideLines, entryJson, queuePauseJson, queuePauseText } from "./landing";

/** A branch is what people name an entry by; its id is needed only where one is in two queues. */
const HEAD = ["BRANCH", "STATE", "", "TARGET", "COMMIT", "ADDED BY", "ENTRY"];

export const command: Command = {
  usage: "land list [--target <branch>] [--all]",
  about:
    "Shows the merge queue: what waits to land, in order, and what was put aside and why. With --all also what has\nlanded lately. Writes nothing.",
  flags: {
    target: { value: "<branch>", completes: "ref", meaning: "only what is to land there" },
    all: { meaning: "also the last 50 that have landed" },
  },
  examples: ["cotenant land list", "cotenant land list --all"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const typed = parsed.text("target");
    const target = typed === undefined ? null : await targetRef(workspace, typed);
    const entries = await queueOf(workspace, target, { all: parsed.has("all") });
    const targets = [
      ...new Set([
        ...(target === null ? [await targetRef(workspace, null)] : [target]),
        ...entries.map((one) => one.target),
      ]),
    ];
    const pauses = (await Promise.all(targets.map((one) => queuePauseOf(workspace, one)))).filter(
      (one) => one !== null,
    );
    const rows = entries.map((entry) => [
      printable(branchName(entry.branch), 60),
      entry.state,
      detail(entry),
      printable(branchName(entry.target), 40),
      entry.commit.slice(0, 12),
      entry.addedBy,
      entry.entryId,
    ]);
    const table = rows.length === 0 ? "the merge queue is empty" : columns(context.terminal, HEAD, rows);
    return {
      data: { entries: entries.map(entryJson), paused: pauses.map(queuePauseJson) },
      text: [
        ...pauses.map(queuePauseText),
        table,
        ...entries.flatMap(({ branch, parked }) =>
          parked === null ? [] : asideLines(printable(branchName(branch), 200), parked),
        ),
      ].join("\n"),
    };
  },
};

function detail({ parked, landed, method, target }: LandEntry): string {
  if (parked !== null) return parked.why;
  if (landed === null) return method;
  return landed.commit === null
    ? "had it already"
    : `as ${landed.commit.slice(0, 12)}${placeOf(landed, target)}`;
}

function placeOf({ ref, isRemoteOnly }: NonNullable<LandEntry["landed"]>, target: string): string {
  if (ref !== target) return `, at ${printable(branchName(ref), 60)}`;
  return isRemoteOnly ? ", on the remote only" : "";
}
