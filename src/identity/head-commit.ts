import type { Git } from "../platform/git";
import type { Platform } from "../platform/platform";
import { decode, joinPath } from "./path-text";
import type { Repository } from "./repository-shape";

const COMMIT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;
/** Plain enough to be looked for as a file, below `refs/` and nowhere else. */
const PLAIN_REF = /^refs(?:\/(?!\.)[^/\0\\]+)+$/;
const STAND_IN = "refs/heads/.invalid";
const MOST_HOPS = 5;

/**
 * The commit that a worktree is on; null before the first one. Read from Git's files, because starting Git costs more
 * than a query; Git is asked where it keeps its refs in another way.
 */
export async function headCommit(
  platform: Platform,
  git: Git,
  { gitDir, commonDir, worktreeRoot }: Pick<Repository, "gitDir" | "commonDir" | "worktreeRoot">,
): Promise<string | null> {
  const { files } = platform;
  const head = joinPath(gitDir, "HEAD");
  let text = (await files.lstat(head))?.kind === "file" ? await contentOf(platform, head) : null;
  for (let hop = 0; text !== null && hop < MOST_HOPS; hop++) {
    if (COMMIT.test(text)) return text;
    const ref = /^ref:\s*(\S.*?)$/.exec(text)?.[1];
    if (ref === undefined || ref === STAND_IN || !PLAIN_REF.test(ref)) break;
    // Of refs that each worktree has for itself only Git knows the rules.
    if (!ref.startsWith("refs/heads/") && !ref.startsWith("refs/remotes/")) break;
    text = await contentOf(platform, joinPath(commonDir, ref));
    if (text !== null) continue;
    const packed = await packedRef(platform, commonDir, ref);
    return packed ?? ((await isFilesBackend(platform, commonDir)) ? null : askGit(git, worktreeRoot));
  }
  return askGit(git, worktreeRoot);
}

/** Of a loose ref; null where it is none. */
export async function contentOf({ files }: Platform, path: string): Promise<string | null> {
  try {
    const bytes = await files.readFile(path);
    return bytes === null ? null : decode(bytes).trim();
  } catch (error) {
    // A directory: `refs/heads/a` where there is `refs/heads/a/b`.
    if ((error as { code?: unknown }).code === "EISDIR") return null;
    throw error;
  }
}

export async function packedRef({ files }: Platform, commonDir: string, ref: string): Promise<string | null> {
  const bytes = await files.readFile(joinPath(commonDir, "packed-refs"));
  if (bytes === null) return null;
  const text = decode(bytes);
  for (let at = text.indexOf(` ${ref}\n`); at !== -1; at = text.indexOf(` ${ref}\n`, at + 1)) {
    const start = text.lastIndexOf("\n", at) + 1;
    const id = text.slice(start, at);
    if (COMMIT.test(id)) return id;
  }
  return null;
}

/** A branch without a commit has no file, and neither has any branch in a repository with reftables. */
async function isFilesBackend({ files }: Platform, commonDir: string): Promise<boolean> {
  return (await files.stat(joinPath(commonDir, "reftable"))) === null;
}

async function askGit(git: Git, cwd: string): Promise<string | null> {
  const { status, stdout } = await git.run(
    ["rev-parse", "--verify", "--quiet", "--end-of-options", "HEAD^{commit}"],
    { cwd },
  );
  const id = decode(stdout).trim();
  return status === 0 && COMMIT.test(id) ? id : null;
}
