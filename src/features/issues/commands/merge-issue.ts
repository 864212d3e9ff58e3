import type { Command } from "../../../cli/grammar/command";
import { printable } from "../../../kernel/ids";
import { mergeIssue } from "../operations/merge-issue";

export const command: Command = {
  usage: "merge-issue [--marker-size <n>] -- <base> <ours> <theirs> [<path> [<our name> <their name>]]",
  about:
    "For Git, which runs it as the merge driver that 'init' registers: merges three versions of an issue.json field by\nfield into <ours>. Exits 0 when that is done, and 1 when it left marks for a person.",
  flags: { "marker-size": { value: "<n>", meaning: "how long conflict marks are" } },
  examples: ["cotenant merge-issue -- base.json ours.json theirs.json"],
  words: { min: 3, max: 6 },
  remindsOfExpiry: false,
  async run(context, parsed) {
    const [base, ours, theirs, path = ours, ourName, theirName] = parsed.words as [
      ...[string, string, string],
      ...(string | undefined)[],
    ];
    const { conflicts, isConflict } = await mergeIssue(context.surroundings(), {
      ...{ base, ours, theirs, ourName, theirName },
      markerSize: parsed.whole("marker-size"),
      onRemark: (line) => context.note(`cotenant: ${printable(path, 300)}: ${line}`),
    });
    return { data: { conflicts }, text: "", exit: isConflict ? 1 : 0 };
  },
};
