import { printable, type WorktreeId } from "../kernel/ids";
import type { Git } from "../platform/git";
import type { Platform } from "../platform/platform";
import { currentBranch } from "./branch";
import { decode, joinPath } from "./path-text";
import type { Repository } from "./repository-shape";
import {
  readWorktreeFile,
  setAside,
  type WorktreeIdentity,
  worktreeFilePath,
  writeWorktreeFile,
} from "./worktree-file";

export type { WorktreeIdentity } from "./worktree-file";

export type WorktreePlace = Pick<Repository, "worktreeRoot" | "gitDir" | "commonDir">;

/**
 * - `stored`: as the file says
 * - `new`: no file yet; the id is the one the first writing command will store
 * - `moved`: the worktree is elsewhere now, the id stays
 * - `copied`: the file came from another worktree that still has it, so this one gets an id of its own
 * - `damaged`: the file cannot be read and is made anew
 */
export type WorktreeStanding = "stored" | "new" | "moved" | "copied" | "damaged";

export interface WorktreeReading {
  readonly identity: WorktreeIdentity;
  readonly standing: WorktreeStanding;
  /** For people, when something happened to the file that they may want to know. */
  readonly warning: string | null;
}

/** Computes and never writes: a read must leave no trace. Throws `E_SCHEMA_NEWER`. */
export async function readWorktreeIdentity(
  platform: Platform,
  git: Git,
  place: WorktreePlace,
): Promise<WorktreeReading> {
  const root = place.worktreeRoot;
  const file = await readWorktreeFile(platform.files, root);
  if (file.kind === "whole") {
    const { identity } = file;
    if (identity.root === root) return { identity, standing: "stored", warning: null };
    if (!(await isHeldBy(platform, identity.root, root, identity.worktreeId))) {
      const relocatedAt = new Date(platform.clock.wallMs()).toISOString();
      return {
        identity: { ...identity, root, relocatedAt },
        standing: "moved",
        warning: `this worktree was moved from ${printable(identity.root, 500)}; it stays ${identity.worktreeId}`,
      };
    }
    const own = await ownIdentity(platform, git, place);
    const warning = `the worktree's identity was copied from ${printable(identity.root, 500)}; this one is ${own.worktreeId}`;
    return { identity: own, standing: "copied", warning };
  }
  const identity = await ownIdentity(platform, git, place);
  if (file.kind === "missing") return { identity, standing: "new", warning: null };
  const warning = `${worktreeFilePath(root)} is damaged (${file.why}); this worktree is ${identity.worktreeId}`;
  return { identity, standing: "damaged", warning };
}

/** The same, and what was computed is stored. Two processes at once store the same. */
export async function ensureWorktreeIdentity(
  platform: Platform,
  git: Git,
  place: WorktreePlace,
): Promise<WorktreeReading> {
  const reading = await readWorktreeIdentity(platform, git, place);
  if (reading.standing === "stored") return reading;
  if (reading.standing !== "damaged") {
    await writeWorktreeFile(platform, reading.identity);
    return reading;
  }
  const aside = await setAside(platform, place.worktreeRoot);
  await writeWorktreeFile(platform, reading.identity);
  return { ...reading, warning: `${reading.warning}; the damaged file is now ${aside}` };
}

/**
 * Whether another directory still lives under the recorded root and has the same id. A file that only names
 * a root which is gone, or which has become somebody else, has moved with its worktree.
 */
async function isHeldBy(
  platform: Platform,
  recorded: string,
  root: string,
  id: WorktreeId,
): Promise<boolean> {
  const { files } = platform;
  try {
    const real = await files.realPath(recorded);
    if (real === null || real === root || (await isSameDirectory(platform, real, root))) return false;
    const bytes = await files.readFile(worktreeFilePath(real));
    // Only the id counts, whichever version wrote the rest.
    const other = bytes === null ? null : (JSON.parse(decode(bytes)) as { worktree_id?: unknown } | null);
    return other?.worktree_id === id;
  } catch {
    return false;
  }
}

/** One directory under two names, as a bind mount makes it. */
async function isSameDirectory(platform: Platform, one: string, other: string): Promise<boolean> {
  // Inodes alone could agree by chance between two file systems.
  for (const path of [(root: string) => root, worktreeFilePath]) {
    const [a, b] = [await platform.files.stat(path(one)), await platform.files.stat(path(other))];
    if (a === null || a.inode !== b?.inode || a.mtimeMs !== b.mtimeMs) return false;
  }
  return true;
}

/** The id of a worktree follows from where and when it was made, so that nothing must be stored to know it. */
async function ownIdentity(platform: Platform, git: Git, place: WorktreePlace): Promise<WorktreeIdentity> {
  const made = await creation(platform, place);
  const hash = platform.digest.sha256(`${place.worktreeRoot}\0${made.mark}`);
  return {
    worktreeId: `wt:${hash.slice(0, 8)}` as WorktreeId,
    branch: await currentBranch(platform, git, place.gitDir),
    root: place.worktreeRoot,
    createdAt: new Date(made.atMs).toISOString(),
    relocatedAt: null,
  };
}

/**
 * When Git made the worktree: the time of a file that `git worktree add` or `git init` wrote once and that
 * Git never touches again. A template may lack it; then the Git directory's own inode must do.
 */
async function creation(platform: Platform, place: WorktreePlace): Promise<{ mark: string; atMs: number }> {
  const witness = joinPath(place.gitDir, place.gitDir === place.commonDir ? "description" : "commondir");
  const stat = await platform.files.stat(witness);
  if (stat !== null) {
    const atMs = Math.floor(stat.mtimeMs);
    return { mark: String(atMs), atMs };
  }
  const directory = await platform.files.stat(place.gitDir);
  return { mark: `inode ${directory?.inode ?? 0}`, atMs: platform.clock.wallMs() };
}
