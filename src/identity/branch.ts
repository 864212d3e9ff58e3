import { limitError } from "../errors/cotenant-error";
import { utf8Length } from "../kernel/keys";
import type { Git } from "../platform/git";
import { gitFailed } from "../platform/git-answers";
import type { Platform } from "../platform/platform";
import { decode, joinPath } from "./path-text";

const HEADS = "refs/heads/";
/** What reftable leaves in HEAD for programs that read the file. */
const STAND_IN = "refs/heads/.invalid";

/**
 * The branch a worktree is on, also before its first commit; null when HEAD is detached. A HEAD outside
 * `refs/heads/` is named in full.
 */
export async function currentBranch(platform: Platform, git: Git, gitDir: string): Promise<string | null> {
  const head = joinPath(gitDir, "HEAD");
  // Very old repositories have a symbolic link there, whose target only Git needs to understand.
  const isFile = (await platform.files.lstat(head))?.kind === "file";
  const content = isFile ? await platform.files.readFile(head) : null;
  if (content === null) return askGit(git, gitDir);
  const ref = /^ref:\s*(\S.*?)\s*$/.exec(decode(content))?.[1];
  if (ref === undefined) return null;
  return ref === STAND_IN ? askGit(git, gitDir) : shortName(ref);
}

async function askGit(git: Git, gitDir: string): Promise<string | null> {
  const answer = await git.run(["symbolic-ref", "--quiet", "HEAD"], {
    cwd: gitDir,
    env: { GIT_DIR: gitDir },
  });
  if (answer.status === 0) return shortName(decode(answer.stdout).trimEnd());
  if (answer.status === 1) return null;
  throw gitFailed("Git cannot read HEAD", answer.stderr, { git_dir: gitDir, status: answer.status });
}

/** No name that Git made is longer; what else stands in HEAD must not get into every lease. */
const LONGEST_BYTES = 4_096;

function shortName(ref: string): string {
  if (utf8Length(ref) > LONGEST_BYTES) {
    throw limitError(`HEAD names a branch of more than ${LONGEST_BYTES} bytes`, "check out another branch");
  }
  return ref.startsWith(HEADS) ? ref.slice(HEADS.length) : ref;
}
