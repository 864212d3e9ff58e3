import type { Git } from "../platform/git";
import { indexFile, stagedObject } from "../platform/git-index";
import { nameOfObject, type ObjectFormat, withHeader } from "../platform/git-object";
import type { Files, Platform } from "../platform/platform";

interface Worktree {
  readonly gitDir: string;
  readonly commonDir: string;
  readonly worktreeRoot: string;
  readonly config: { readonly objectFormat: ObjectFormat };
}

/** Where a worktree is, and what Git knows of it. */
export interface Committed extends Worktree {
  readonly git: Git;
  readonly index: string;
}

const CONFIG = ".cotenant/config.toml";
export const COMMITTED_CONFIG = `HEAD:${CONFIG}`;

/** `env` is the caller's, for whom Git may have named another index than the usual one. */
export function committedIn(
  git: Git,
  worktree: Worktree,
  env: Readonly<Record<string, string | undefined>> = {},
): Committed {
  return { ...worktree, git, index: indexFile(env, worktree) };
}

/**
 * The repository's file as it is committed, for a worktree that does not have it: one of a sparse checkout, or one from which
 * it was deleted. What the repository rules does not depend on what somebody has checked out.
 */
export async function committedConfig(platform: Platform, committed: Committed): Promise<Uint8Array | null> {
  if (!(await mayHaveIt(platform, committed))) return null;
  const { git, worktreeRoot: cwd } = committed;
  const { status, stdout } = await git.run(["cat-file", "blob", COMMITTED_CONFIG], { cwd });
  return status === 0 ? stdout : null;
}

/**
 * The same for a worktree that has another file than the index; `text` is that file's, null where it cannot be read. Null
 * where the file is as it is staged, which is mostly so and needs no process to see.
 */
export async function replacedConfig(
  platform: Platform,
  committed: Committed,
  text: string | null,
): Promise<Uint8Array | null> {
  const { index, config } = committed;
  const staged =
    text === null ? null : await stagedObject(platform.files, index, CONFIG, config.objectFormat);
  const isStaged = (content: string) => {
    const blob = withHeader("blob", new TextEncoder().encode(content));
    return nameOfObject(platform.digest, config.objectFormat, blob) === staged;
  };
  // Git may have written the ends of lines as this machine has them.
  if (text !== null && staged !== null && (isStaged(text) || isStaged(text.replaceAll("\r\n", "\n"))))
    return null;
  return committedConfig(platform, committed);
}

/** Asking Git takes a process. Paths stand in its index as they are, except in version 4. */
async function mayHaveIt({ files }: Platform, { index: file, commonDir }: Committed): Promise<boolean> {
  const index = await files.readFile(file);
  // Before the first commit, or after a clone that checked nothing out.
  if (index === null) return hasBranches(files, commonDir);
  if (index[7] === 4) return true;
  const name = new TextEncoder().encode(".cotenant/");
  for (let at = index.indexOf(name[0]!); at >= 0; at = index.indexOf(name[0]!, at + 1))
    if (name.every((byte, i) => index[at + i] === byte)) return true;
  return false;
}

async function hasBranches(files: Files, commonDir: string): Promise<boolean> {
  const loose = await files.readDirectory(`${commonDir}/refs/heads`);
  if (loose !== null && loose.length > 0) return true;
  for (const name of ["packed-refs", "reftable"])
    if ((await files.stat(`${commonDir}/${name}`)) !== null) return true;
  return false;
}
