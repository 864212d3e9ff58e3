import { orThrow } from "../errors/cotenant-error";
import { parseWorktreeId, printable, type WorktreeId } from "../kernel/ids";
import type { Git } from "../platform/git";
import type { Platform } from "../platform/platform";
import { currentBranch } from "./branch";
import { readDotGit } from "./git-directory";
import { decode, joinPath } from "./path-text";
import type { Repository } from "./repository-shape";
import { trackedBelow } from "./tracked";
import {
  DATA_DIRECTORY,
  earlierFilePath,
  readWorktreeFile,
  setAside,
  type WorktreeIdentity,
  worktreeFilePath,
  writeWorktreeFile,
} from "./worktree-file";

export type WorktreePlace = Pick<Repository, "worktreeRoot" | "gitDir" | "commonDir">;

/**
 * - `stored`: as the file says
 * - `new`: no file yet; the id is the one the first writing command will store
 * - `moved`: the worktree is elsewhere now, the id stays
 * - `copied`: the file came from another worktree that still has it, so this one gets an id of its own
 * - `doubled`: another directory uses the same Git directory and has its id; this one's is computed and never stored
 * - `damaged`: the file cannot be read and is made anew
 */
type WorktreeStanding = "stored" | "new" | "moved" | "copied" | "doubled" | "damaged";

export interface WorktreeReading {
  readonly identity: WorktreeIdentity;
  readonly standing: WorktreeStanding;
  /** For people, when something happened to the file that they may want to know. */
  readonly warning: string | null;
}

interface Finding extends WorktreeReading {
  /** The file that has to be there before the identity is known to others. */
  readonly isWritten: boolean;
  /** A file of an earlier version that this one was taken over from. */
  readonly earlier?: string;
}

/** Computes and never writes: a read must leave no trace. Throws `E_SCHEMA_NEWER`. */
export async function readWorktreeIdentity(
  platform: Platform,
  git: Git,
  place: WorktreePlace,
): Promise<WorktreeReading> {
  const { identity, standing, warning } = await find(platform, git, place);
  return { identity, standing, warning };
}

/** The same, and what was computed is stored. Two processes at once store the same. */
export async function ensureWorktreeIdentity(
  platform: Platform,
  git: Git,
  place: WorktreePlace,
): Promise<WorktreeReading> {
  const { isWritten, earlier, ...reading } = await find(platform, git, place);
  if (isWritten || reading.standing === "doubled") return reading;
  const aside =
    reading.standing === "damaged" ? await setAside(platform, worktreeFilePath(place.gitDir)) : null;
  await writeWorktreeFile(platform, place.gitDir, reading.identity);
  // Only now: whoever dies before finds it again.
  if (earlier !== undefined) await platform.files.unlink(earlier);
  return aside === null
    ? reading
    : { ...reading, warning: `${reading.warning}; the damaged file is now ${aside}` };
}

/** The same for one that may share its id with another worktree of the repository: then it gets a new one. */
export async function settleWorktreeIdentity(
  platform: Platform,
  git: Git,
  place: WorktreePlace,
): Promise<WorktreeReading> {
  const reading = await ensureWorktreeIdentity(platform, git, place);
  const { worktreeId } = reading.identity;
  if (reading.standing === "doubled" || !(await isStoredBeside(platform, place, worktreeId))) return reading;
  const identity = await ownIdentity(platform, git, place, worktreeId);
  await writeWorktreeFile(platform, place.gitDir, identity);
  const warning = `another worktree is ${worktreeId}, too; this one is ${identity.worktreeId} now`;
  return { identity, standing: "copied", warning };
}

async function find(platform: Platform, git: Git, place: WorktreePlace): Promise<Finding> {
  const { worktreeRoot: root, gitDir } = place;
  const path = worktreeFilePath(gitDir);
  const file = await readWorktreeFile(platform.files, path);
  if (file.kind === "missing") {
    const earlier = await takenOver(platform, git, place);
    if (earlier !== null)
      return { ...placed(platform, earlier, root), isWritten: false, earlier: earlierFilePath(root) };
    const identity = await ownIdentity(platform, git, place, null);
    return { identity, standing: "new", warning: null, isWritten: false };
  }
  if (file.kind === "damaged") {
    const identity = await ownIdentity(platform, git, place, null);
    const warning = `${path} is damaged (${file.why}); this worktree is ${identity.worktreeId}`;
    return { identity, standing: "damaged", warning, isWritten: false };
  }
  const { identity } = file;
  if (identity.root === root) return { ...placed(platform, identity, root), isWritten: true };
  const living = await livingElsewhere(platform, place, identity);
  if (living === null) return { ...placed(platform, identity, root), isWritten: false };
  const own = await ownIdentity(platform, git, place, identity.worktreeId);
  const there = printable(identity.root, 500);
  const warning =
    living === "doubled"
      ? `this directory and ${there} share one Git directory, with one HEAD and one index; this one is ${own.worktreeId}`
      : `the worktree's identity was copied from ${there}; this one is ${own.worktreeId}`;
  return { identity: own, standing: living, warning, isWritten: false };
}

/** What is recorded, at the place where the worktree is by now. */
function placed(platform: Platform, identity: WorktreeIdentity, root: string): WorktreeReading {
  if (identity.root === root) return { identity, standing: "stored", warning: null };
  const relocatedAt = new Date(platform.clock.wallMs()).toISOString();
  return {
    identity: { ...identity, root, relocatedAt },
    standing: "moved",
    warning: `this worktree was moved from ${printable(identity.root, 500)}; it stays ${identity.worktreeId}`,
  };
}

/**
 * What an earlier version had stored among the files. A stash or a commit may have brought it from another worktree, so
 * it counts only where Git does not have it, where no other worktree is or was stored under its id, and where nobody is at
 * the place that it names.
 */
async function takenOver(
  platform: Platform,
  git: Git,
  place: WorktreePlace,
): Promise<WorktreeIdentity | null> {
  const { files } = platform;
  const { worktreeRoot: root, gitDir } = place;
  const path = earlierFilePath(root);
  if ((await files.lstat(path))?.kind !== "file") return null;
  let file: Awaited<ReturnType<typeof readWorktreeFile>>;
  try {
    file = await readWorktreeFile(files, path);
  } catch {
    // No newer version writes there.
    return null;
  }
  if (file.kind !== "whole") return null;
  const { identity } = file;
  if (identity.root !== root && (await gitDirAt(platform, identity.root)) !== null) return null;
  if (await isStoredBeside(platform, place, identity.worktreeId)) return null;
  const tracked = await trackedBelow(git, { root, gitDir }, `${DATA_DIRECTORY}/worktree.json`);
  return tracked.length === 0 ? identity : null;
}

/**
 * Whether another worktree lives under the id. A file that only names a root which is gone, or which has become somebody
 * else, has moved with its worktree.
 */
async function livingElsewhere(
  platform: Platform,
  place: WorktreePlace,
  { root: recorded, worktreeId }: WorktreeIdentity,
): Promise<"copied" | "doubled" | null> {
  const { worktreeRoot: root } = place;
  if (!(await isSameDirectory(platform, recorded, root))) {
    const gitDir = await gitDirAt(platform, recorded);
    // Without a `.git` in either, the environment has led to both.
    const isLed = gitDir === null && (await gitDirAt(platform, root)) === null;
    if (gitDir === place.gitDir || (isLed && (await platform.files.stat(recorded))?.kind === "directory"))
      return "doubled";
    if (gitDir !== null && (await storedIn(platform, gitDir)) === worktreeId) return "copied";
  }
  return (await isStoredBeside(platform, place, worktreeId)) ? "copied" : null;
}

/** The Git directory that a directory's `.git` leads to; null for one that is no worktree. */
async function gitDirAt(platform: Platform, root: string): Promise<string | null> {
  const found = await readDotGit(platform.files, root);
  return found === null || found === "odd" ? null : found.gitDir;
}

/** Whether another worktree of the same repository has the id on record. */
async function isStoredBeside(
  platform: Platform,
  { gitDir, commonDir }: WorktreePlace,
  id: WorktreeId,
): Promise<boolean> {
  const linked = joinPath(commonDir, "worktrees");
  const names = (await platform.files.readDirectory(linked)) ?? [];
  for (const other of [commonDir, ...names.map((name) => joinPath(linked, name))])
    if (other !== gitDir && (await storedIn(platform, other)) === id) return true;
  return false;
}

/** The id that is stored in a Git directory. Only the id counts, whichever version wrote the rest. */
async function storedIn(platform: Platform, gitDir: string): Promise<unknown> {
  try {
    const bytes = await platform.files.readFile(worktreeFilePath(gitDir));
    return bytes === null
      ? null
      : (JSON.parse(decode(bytes)) as { worktree_id?: unknown } | null)?.worktree_id;
  } catch {
    return null;
  }
}

/** One directory under two names, as a bind mount makes it. */
async function isSameDirectory(platform: Platform, one: string, other: string): Promise<boolean> {
  // Inodes alone could agree by chance between two file systems.
  for (const path of [(root: string) => root, (root: string) => joinPath(root, ".git")]) {
    const [a, b] = [await platform.files.stat(path(one)), await platform.files.stat(path(other))];
    if (a === null || a.inode !== b?.inode || a.mtimeMs !== b.mtimeMs) return false;
  }
  return true;
}

/** The id of a worktree follows from where and when it was made, so that nothing must be stored to know it. */
async function ownIdentity(
  platform: Platform,
  git: Git,
  place: WorktreePlace,
  taken: WorktreeId | null,
): Promise<WorktreeIdentity> {
  const { worktreeRoot: root } = place;
  const made = await creation(platform, place);
  const idOver = (text: string) => orThrow(parseWorktreeId(`wt:${platform.digest.sha256(text).slice(0, 8)}`));
  const usual = idOver(`${root}\0${made.mark}`);
  // A copy that was put where the original was before it moved would come to the same.
  const inode = usual === taken ? ((await platform.files.stat(root))?.inode ?? 0) : null;
  return {
    worktreeId: inode === null ? usual : idOver(`${root}\0${made.mark}\0${inode}`),
    branch: await currentBranch(platform, git, place.gitDir),
    root,
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
