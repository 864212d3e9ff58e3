import type { Git } from "../platform/git";
import { gitFailed } from "../platform/git-answers";

const GIT_MS = 8_000;
/** Beyond this, the whole worktree is asked for: an argument list has its limits. */
const MOST_PATHS = 500;

/** For paths of keys: from the worktree's root, and without any meaning of their letters. */
export function pathspecsOf(paths: readonly string[]): string[] {
  return paths.length > MOST_PATHS ? [] : paths.map((path) => `:(top,literal)${path}`);
}

const HOW = ["--porcelain=v1", "-z", "--no-renames", "--untracked-files=all"];

/**
 * What differs from HEAD in a worktree: changed, staged, new and not ignored, or gone. All of it where nothing is named. Throws
 * where Git does not say: that is not the same as nothing.
 */
export async function dirtyPaths(
  git: Git,
  worktreeRoot: string,
  pathspecs: readonly string[],
): Promise<string[]> {
  const { status, stdout, stderr } = await git.run(
    // What a submodule stands at is a change here, whatever Git is told to pass over; what is in it is its own repository's.
    ["status", ...HOW, "--ignore-submodules=dirty", "--", ...pathspecs],
    // Git would refresh the index on the way, and may meet somebody else's commit there.
    { cwd: worktreeRoot, timeoutMs: GIT_MS, env: { GIT_OPTIONAL_LOCKS: "0" } },
  );
  if (status !== 0)
    throw gitFailed(`Git cannot say what has changed in ${worktreeRoot}`, stderr, {
      cwd: worktreeRoot,
      status,
    });
  return new TextDecoder()
    .decode(stdout)
    .split("\0")
    .filter((entry) => entry.length > 3)
    .map((entry) => entry.slice(3));
}
