import type { Files } from "../platform/platform";
import { decode, joinPath, resolveFrom } from "./path-text";

/** A directory that Git accepts as `$GIT_DIR`. Both paths are real paths. */
export interface GitDirectory {
  readonly gitDir: string;
  /** Where objects, refs and the configuration are: `gitDir` itself, except for a linked worktree. */
  readonly commonDir: string;
}

/** A `.git` found in a directory, with the owner of each thing Git checks before it trusts a repository. */
export interface DotGit extends GitDirectory {
  readonly owners: readonly number[];
}

const HEAD_CONTENT = /^(?:ref:\s*refs\/|[0-9a-f]{40}(?:[0-9a-f]{24})?(?:\s|$))/i;
const GIT_FILE = /^gitdir: ([^\0]+?)[\r\n]*$/;

/**
 * The same test as Git's `is_git_directory`: a HEAD that could be one, and `objects` and `refs` beside it or
 * in the common directory.
 */
export async function readGitDirectory(files: Files, path: string): Promise<GitDirectory | null> {
  const head = await files.lstat(joinPath(path, "HEAD"));
  if (head === null) return null;
  if (head.kind !== "symlink") {
    const content = head.kind === "file" ? await files.readFile(joinPath(path, "HEAD")) : null;
    if (content === null || !HEAD_CONTENT.test(decode(content.subarray(0, 256)))) return null;
  }
  const gitDir = await files.realPath(path);
  if (gitDir === null) return null;
  const pointer = await files.readFile(joinPath(gitDir, "commondir"));
  const commonDir =
    pointer === null
      ? gitDir
      : await files.realPath(resolveFrom(gitDir, decode(pointer).replace(/[\r\n]+$/, "")));
  if (commonDir === null) return null;
  for (const name of ["objects", "refs"]) {
    if ((await files.stat(joinPath(commonDir, name))) === null) return null;
  }
  return { gitDir, commonDir };
}

/**
 * What `.git` in a directory says: null when there is none that counts, "odd" when it is something only Git
 * should judge (a file that points nowhere, a name that cannot be read).
 */
export async function readDotGit(files: Files, directory: string): Promise<DotGit | "odd" | null> {
  const path = joinPath(directory, ".git");
  try {
    const entry = await files.stat(path);
    if (entry === null) return null;
    // Git walks on past a directory that merely has the name, but stops at a file that leads nowhere.
    const isFile = entry.kind === "file";
    const target = isFile ? await readGitFile(files, path, directory) : path;
    const found = target === null ? null : await readGitDirectory(files, target);
    if (found === null) return isFile ? "odd" : null;
    const gitDir = isFile ? await files.stat(found.gitDir) : entry;
    const root = await files.stat(directory);
    if (gitDir === null || root === null) return "odd";
    return { ...found, owners: [entry.uid, gitDir.uid, root.uid] };
  } catch (error) {
    if (typeof (error as { code?: unknown })?.code === "string") return "odd";
    throw error;
  }
}

async function readGitFile(files: Files, path: string, directory: string): Promise<string | null> {
  const content = await files.readFile(path);
  const found = content === null ? null : GIT_FILE.exec(decode(content));
  return found === null ? null : resolveFrom(directory, found[1]!);
}
