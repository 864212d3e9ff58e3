import type { Command } from "../../../cli/grammar/command";
import { columns } from "../../../cli/terminal/render";
import { HARNESS_NAMES } from "../../../identity/harness";
import { printable } from "../../../kernel/ids";
import { HARNESSES } from "../../guard/harness";
import { viaName } from "../command-line";
import { isPresent } from "../presence";
import { harnessesOrAll, lookAround, type Seen, stateSeen } from "./agents";

export const command: Command = {
  usage: "agent list [<harness>…]",
  about:
    "Shows for each harness whether it has anything in your home (HERE), and which settings have it ask cotenant before it writes:\ninstalled, outdated (by an older version, twice, or from a program that is gone), changed (a file of ours, by hand),\nunreadable or missing.",
  flags: {},
  examples: ["cotenant agent list", "cotenant agent list --json"],
  words: { min: 0, max: HARNESS_NAMES.length },
  completes: HARNESS_NAMES.map(() => ({ choices: HARNESS_NAMES })),
  mendsConfig: true,
  async run(context, parsed) {
    const wanted = harnessesOrAll(parsed);
    const { seen, grounds, platform } = await lookAround(context, wanted);
    const harnesses = [];
    for (const harness of wanted) {
      const all = seen.filter(({ found }) => found.site.harness === harness);
      const known = all.map(({ found }) => found);
      const isFound = await isPresent(platform.files, harness, grounds, known);
      const files = all.filter(isWorthShowing);
      harnesses.push({
        harness,
        title: HARNESSES[harness].title,
        found: isFound,
        files: files.map(fileJson),
      });
    }
    const rows = harnesses.flatMap(({ title, found, files }) =>
      (files.length === 0 ? [null] : files).map((file) => [
        title,
        found ? "yes" : "no",
        file?.level ?? "",
        file === null ? "missing" : stateWords(file),
        file === null ? "" : printable(file.path, 400),
      ]),
    );
    const isAnyInstalled = harnesses.some(({ files }) => files.length > 0);
    const text = [
      columns(context.terminal, ["HARNESS", "HERE", "LEVEL", "STATE", "FILE"], rows),
      ...(isAnyInstalled ? [] : ["next: cotenant agent install <harness>"]),
    ].join("\n");
    return { data: { harnesses }, text };
  },
};

function stateWords({ state, by_hand: isByHand, via }: ReturnType<typeof fileJson>): string {
  return [state, ...(isByHand ? ["by hand"] : []), ...(via === "program" ? [] : [`via ${via}`])].join(", ");
}

/** Files without anything of ours say nothing. */
function isWorthShowing({ found, state: { state } }: Seen): boolean {
  return state !== "missing" && (state !== "unreadable" || found.record !== null);
}

function fileJson(seen: Seen) {
  const { found, state, isProgramThere } = seen;
  const { site, file, record, standing } = found;
  return {
    level: site.level,
    path: file.path,
    shared: record?.isShared === true || standing === "tracked",
    state: stateSeen(seen),
    by_hand: state.isByHand,
    via: viaName(state.via),
    program: state.program === null ? null : { path: state.program.program, found: isProgramThere },
    why: state.why,
  };
}
