import { CotenantError } from "../errors/cotenant-error";
import type { Git } from "../platform/git";
import { gitWords } from "../platform/git-answers";
import { decode, joinPath } from "./path-text";

/** What Git has in its index at a path of a worktree, or below it. */
export async function trackedBelow(
  git: Git,
  { root, gitDir }: { readonly root: string; readonly gitDir: string },
  path: string,
): Promise<string[]> {
  const args = [
    "--git-dir",
    gitDir,
    "--work-tree",
    root,
    "--literal-pathspecs",
    "ls-files",
    "-z",
    "--",
    path,
  ];
  const { status, stdout, stderr } = await git.run(args, { cwd: root });
  if (status !== 0) {
    throw new CotenantError("E_GIT", `Git cannot say what it has in ${joinPath(root, path)}`, {
      data: { git: gitWords(stderr), status },
    });
  }
  return decode(stdout)
    .split("\0")
    .filter((name) => name !== "");
}
