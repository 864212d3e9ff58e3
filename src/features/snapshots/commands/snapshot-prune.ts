import type { Command } from "../../../cli/grammar/command";
import { parseAge } from "../../../coordinator/since";
import { CotenantError } from "../../../errors/cotenant-error";
import { count } from "../../../kernel/printing";
import { type Doomed, planId, planRetention, removeSnapshot } from "../retention";
import { meantSnapshot } from "../shelf";
import { darkroom, noteText, readingRoom, snapshotJson } from "./snapshots";

export const command: Command = {
  usage: "snapshot prune [<snapshot>…] [--older-than <age>] [--manual] [--keep <n>] [--all] [--run <plan>]",
  about:
    "Shows which snapshots would go, and removes them when it is run again with the plan's id: nothing goes that was not\nshown. Without more: automatic ones beyond snapshot.keep_automatic. Tagged ones, the last of each worktree and what\nwas kept of removed worktrees go only by name.",
  flags: {
    "older-than": { value: "<age>", meaning: "those older than this: 30d, 12h" },
    manual: { meaning: "with --older-than: also those that somebody took" },
    keep: { value: "<n>", meaning: "how many automatic ones of a worktree stay" },
    all: { meaning: "of every worktree, not only of this one" },
    run: { value: "<plan>", meaning: "do it: the id that the preview showed" },
  },
  examples: ["cotenant snapshot prune", "cotenant snapshot prune --older-than 30d --all"],
  words: { min: 0, max: 100 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const { studio, shelf } = readingRoom(workspace);
    const { digest, clock } = studio.platform;
    const all = await shelf.all();
    const { worktreeId } = (await workspace.worktree("read")).identity;
    const nowMs = clock.wallMs();
    const age = parsed.text("older-than");
    const rules = {
      keepAutomatic: parsed.whole("keep") ?? workspace.config.values["snapshot.keep_automatic"],
      olderThanMs: age === undefined ? null : parseAge(age, "--older-than"),
      worktreeId: parsed.has("all") ? null : worktreeId,
      withManual: parsed.has("manual"),
      named: parsed.words.map((word) => meantSnapshot(word, all, worktreeId).snapshot_id),
    };
    if (rules.withManual && rules.olderThanMs === null)
      throw new CotenantError("E_USAGE", "--manual takes away by age: --older-than is missing", {
        hint: "for example --older-than 30d --manual; or name the snapshots",
      });
    const doomed = planRetention(all, rules, nowMs);
    const plan = planId((text) => digest.sha256(text), doomed);
    const run = parsed.text("run");
    if (run !== undefined && run !== plan)
      throw new CotenantError("E_CONSISTENCY_UNAVAILABLE", "there are other snapshots now than were shown", {
        hint: "look again: the same command without --run",
        data: { plan_id: plan },
      });
    if (run !== undefined) {
      const room = await darkroom(workspace);
      for (const { descriptor, why } of doomed) await removeSnapshot(room, descriptor, why);
    }
    return {
      data: {
        snapshots: doomed.map(({ descriptor, why }) => ({ ...snapshotJson(descriptor, all), why })),
        plan_id: plan,
        removed: run !== undefined,
      },
      text: context.quiet && run !== undefined ? "" : textOf(doomed, plan, run !== undefined),
    };
  },
};

function textOf(doomed: readonly Doomed[], plan: string, isDone: boolean): string {
  if (doomed.length === 0) return "nothing to take away";
  const lines = doomed.map(
    ({ descriptor, why }) =>
      `${descriptor.snapshot_id}  ${descriptor.created_at}  ${descriptor.worktree_id}  (${why})  ${noteText(descriptor)}`,
  );
  const end = isDone
    ? `removed ${count(doomed.length, "snapshot")}`
    : `${count(doomed.length, "snapshot")} would go; to do it, the same again with --run ${plan}`;
  return [...lines, end].join("\n");
}
