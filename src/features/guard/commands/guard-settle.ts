import type { Command } from "../../../cli/grammar/command";
import { usage } from "../../../cli/grammar/parse";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import { settleSeen, type Trespass, trespasses } from "../trespasses";
import { lookingAt, trespassJson } from "./trespass-text";

const HELP = "cotenant guard settle --help";

export const command: Command = {
  usage: "guard settle (<id>|<path>)… | --all",
  about:
    "Says that somebody has looked at files that a shell command changed under somebody else's lease: they leave 'status'\nand 'guard status', which show their ids; the log keeps them. A path is of this worktree, and a directory stands for what is in it.\nFor people, and for whoever held the file.",
  flags: { all: { meaning: "everything that is on record, in all worktrees" } },
  examples: ["cotenant guard settle --all --agent-id human:ada"],
  words: { min: 0, max: 100 },
  completes: ["path"],
  async run(context, parsed) {
    const isAll = parsed.has("all");
    if (isAll === parsed.words.length > 0)
      throw usage(isAll ? "--all leaves nothing to name" : "name what was looked at, or give --all", HELP);
    const workspace = await context.workspace();
    const known = await trespasses(lookingAt(workspace));
    const session = await workspace.session("write");
    const { worktreeId } = session.actor;
    const meant = new Set(isAll ? known : []);
    for (const word of parsed.words)
      for (const one of await namedBy(workspace, known, word, worktreeId)) meant.add(one);
    const settled = [...meant];
    await settleSeen(session, settled);
    const text =
      settled.length === 0
        ? "nothing to settle"
        : `${count(settled.length, "file")} settled: ${settled
            .slice(0, 5)
            .map(({ violation }) => printable(violation.path, 200))
            .join(", ")}${settled.length > 5 ? `, and ${settled.length - 5} more` : ""}`;
    return { data: { settled: settled.map(trespassJson) }, text: context.quiet ? "" : text };
  },
};

/** By its id, which is meant in every worktree; else by where the file is. */
async function namedBy(
  workspace: Workspace,
  known: readonly Trespass[],
  word: string,
  worktreeId: string,
): Promise<readonly Trespass[]> {
  const byId = known.filter(({ id }) => id === word);
  if (byId.length > 0) return byId;
  const { path } = await workspace.path(word);
  const found = known.filter(
    ({ violation }) =>
      violation.worktreeId === worktreeId &&
      (path === "." || violation.path === path || violation.path.startsWith(`${path}/`)),
  );
  if (found.length > 0) return found;
  throw new CotenantError("E_NOT_FOUND", `nothing is on record about "${printable(word, 200)}"`, {
    hint: "'cotenant guard status' lists what is, with its id",
  });
}
