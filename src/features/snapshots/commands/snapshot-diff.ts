import type { Command } from "../../../cli/grammar/command";
import { CotenantError } from "../../../errors/cotenant-error";
import { fromByteText } from "../../../git/byte-text";
import { printable } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import { ask, LONG_MS } from "../../worktrees/git-calls";
import { capture } from "../capture";
import { type Compared, compareFiles, type Files, filesOf } from "../comparing";
import { readContents } from "../contents";
import { nowOf } from "../replacing";
import { readingRoom, snapshotJson, snapshotMeant } from "./snapshots";

const MARKS = { added: "A", removed: "D", changed: "M", mode: "m" } as const;

export const command: Command = {
  usage: "snapshot diff <snapshot> [<snapshot>] [--patch]",
  about:
    "Shows which files differ between two snapshots, or between one and this worktree as it is now. A: added, D: removed,\nM: changed, m: only its permissions. --patch shows the changes themselves, between two. Writes nothing.",
  flags: { patch: { meaning: "the changes line by line, as 'git diff' has them; of two snapshots only" } },
  examples: ["cotenant snapshot diff latest"],
  words: { min: 1, max: 2 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const [first, second] = parsed.words as [string, string | undefined];
    const room = readingRoom(workspace);
    const { studio, place } = room;
    const before = await snapshotMeant(workspace, first);
    const after = second === undefined ? null : await snapshotMeant(workspace, second);
    if (parsed.has("patch") && after === null)
      throw new CotenantError("E_USAGE", "--patch compares two snapshots", {
        hint: "take one of the worktree as it is now (cotenant snapshot), and name both",
      });
    const contents = await readContents(studio, place, before.descriptor);
    let now: Files;
    if (after !== null) now = filesOf(await readContents(studio, place, after.descriptor));
    else {
      const captured = await capture(studio, place, {
        ...{ id: "diff", isQuiesced: false, remembered: null, nowMs: 0, isDry: true, pulse: async () => {} },
        withIgnored: before.descriptor.includes_ignored,
      });
      now = nowOf(captured).files;
    }
    const compared = compareFiles(filesOf(contents), now);
    const patch =
      parsed.has("patch") && after !== null
        ? new TextDecoder().decode(
            await ask(
              studio.git,
              [
                "diff",
                "--no-ext-diff",
                "--no-textconv",
                "--no-color",
                before.descriptor.tree,
                after.descriptor.tree,
              ],
              { cwd: place.root, timeoutMs: LONG_MS },
              "comparing two snapshots",
            ),
          )
        : null;
    const lines = compared.map(({ path, difference }) => `${MARKS[difference]}  ${shown(path)}`);
    return {
      data: {
        before: snapshotJson(before.descriptor, before.all),
        after: after === null ? null : snapshotJson(after.descriptor, before.all),
        files: compared.map(comparedJson),
        ...(patch === null ? {} : { patch }),
      },
      text:
        patch !== null
          ? patch.replace(/[^\P{C}\n\t]/gu, "\u{fffd}")
          : lines.length === 0
            ? "nothing differs"
            : [...lines, count(lines.length, "file")].join("\n"),
    };
  },
};

function comparedJson({ path, difference, before, after }: Compared): Record<string, unknown> {
  const mode = (of: Compared["before"]) =>
    of?.kind === "file" ? of.mode.toString(8).padStart(4, "0") : null;
  return {
    path: fromByteText(path),
    difference,
    before: before === null ? null : { kind: before.kind, oid: before.oid, mode: mode(before) },
    after: after === null ? null : { kind: after.kind, oid: after.oid, mode: mode(after) },
  };
}

function shown(path: string): string {
  return printable(fromByteText(path), 1_000);
}
