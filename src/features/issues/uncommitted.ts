import type { Ulid } from "../../kernel/ids";
import type { Git } from "../../platform/git";
import { ISSUES, toIds } from "./folder";

/** Issues that were written in a worktree and are in no commit of it as they are now. None where Git cannot tell. */
export async function uncommittedIssues(git: Git, root: string): Promise<Ulid[]> {
  const args = [
    "status",
    "--porcelain",
    "-z",
    "--no-renames",
    "--untracked-files=all",
    "--",
    `:(top)${ISSUES}/`,
  ];
  const { status, stdout } = await git.run(args, {
    cwd: root,
    env: { GIT_OPTIONAL_LOCKS: "0" },
    timeoutMs: 60_000,
  });
  if (status !== 0) return [];
  const names = new TextDecoder().decode(stdout).split("\0");
  // Two letters and a blank, then the path.
  return toIds([...new Set(names.map((name) => name.slice(3 + ISSUES.length + 1).split("/")[0]!))]);
}
