import type { Command } from "../../../cli/grammar/command";
import { count } from "../../../cli/terminal/render";
import type { Cover } from "../../../identity/patterns";
import { printable } from "../../../kernel/ids";
import { ACQUIRE_FLAGS, acquire } from "./acquiring";
import { covers, readBareTargetFlags, TARGET_FLAGS, targetKeys } from "./targets";

export const command: Command = {
  usage: "lock acquire <file>… [--dir <path>] [--resource <name>] [--ref <refs/…>] [--ttl <secs>] [--wait]",
  about:
    "Leases files, directories, resources or refs: all of them or none. A directory excludes everything in it\nand every directory around it. Asking again for what you hold returns the same lease. A pattern is refused unless\na file has that very name; with --glob, the smallest directory that covers all that match is leased, with everything in\nit, also files that do not match and files that are still to be made.",
  flags: {
    ...ACQUIRE_FLAGS,
    ...TARGET_FLAGS,
    glob: {
      meaning:
        "every word is a pattern of Git's (*, **, [abc]): lease the directory that covers what matches",
    },
  },
  examples: [
    "cotenant lock acquire src/app.ts src/app.test.ts",
    "cotenant lock acquire --dir src/api --ttl 1800",
    "cotenant lock acquire --glob 'src/api/**/*.ts'",
    "cotenant lock acquire --resource staging-database --wait --timeout 120",
  ],
  words: { min: 0, max: Number.POSITIVE_INFINITY },
  completes: ["path"],
  prepare: readBareTargetFlags,
  async run(context, parsed) {
    const workspace = await context.workspace();
    const covering = parsed.has("glob") ? await covers(workspace, parsed.words) : null;
    const keys = await targetKeys(workspace, parsed, covering);
    const output = await acquire(context, parsed, workspace, { keys, steal: false, noun: "lock" });
    if (covering === null) return output;
    const text = context.quiet ? output.text : [output.text, ...covering.flatMap(coverLines)].join("\n");
    return { ...output, text, data: { ...output.data, covers: covering } };
  },
};

const MOST_SHOWN = 10;

function coverLines({ pattern, files, directory }: Cover): string[] {
  const shown = files.slice(0, MOST_SHOWN).map((file) => `    ${printable(file, 400)}`);
  const more = files.length - shown.length;
  return [
    `  ${printable(pattern, 200)} matches ${count(files.length, "file")} now; all of ${printable(directory, 400)}/ is leased:`,
    ...shown,
    ...(more > 0 ? [`    … and ${more} more`] : []),
  ];
}
