import type { Git } from "../platform/git";
import type { Files, Platform } from "../platform/platform";

/** Where a worktree is, and what Git knows of it. */
export interface Committed {
  readonly git: Git;
  readonly gitDir: string;
  readonly commonDir: string;
  readonly worktreeRoot: string;
}

export const COMMITTED_CONFIG = "HEAD:.cotenant/config.toml";

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

/** Asking Git takes a process. Paths stand in its index as they are, except in version 4. */
async function mayHaveIt({ files }: Platform, { gitDir, commonDir }: Committed): Promise<boolean> {
  const index = await files.readFile(`${gitDir}/index`);
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
