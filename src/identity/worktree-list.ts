import { CotenantError } from "../errors/cotenant-error";
import type { WorktreeId } from "../kernel/ids";
import type { Git } from "../platform/git";
import type { Platform } from "../platform/platform";
import { currentBranch } from "./branch";
import { readDotGit } from "./git-directory";
import { decode, joinPath, parentOf, resolveFrom } from "./path-text";
import type { Repository } from "./repository-shape";
import { readWorktreeIdentity, type WorktreePlace } from "./worktree";

export interface WorktreeEntry {
  readonly root: string;
  readonly gitDir: string;
  readonly branch: string | null;
  /** Null for a worktree that is gone, or whose identity a newer cotenant wrote. */
  readonly worktreeId: WorktreeId | null;
  /** False when the directory is gone, or something else is in its place. */
  readonly exists: boolean;
  /** Whether the place belongs to another repository by now: nothing of ours to touch. */
  readonly isReplaced: boolean;
  readonly isMain: boolean;
}

/** All worktrees of the repository, the main one first, without asking Git. */
export async function listWorktrees(
  platform: Platform,
  git: Git,
  repository: Repository,
): Promise<WorktreeEntry[]> {
  const { commonDir, mainWorktreeRoot } = repository;
  const entries: WorktreeEntry[] = [];
  if (mainWorktreeRoot !== null) {
    entries.push(await describe(platform, git, mainWorktreeRoot, commonDir, commonDir));
  }
  const directory = joinPath(commonDir, "worktrees");
  for (const name of ((await platform.files.readDirectory(directory)) ?? []).sort()) {
    const gitDir = joinPath(directory, name);
    const pointer = await platform.files.readFile(joinPath(gitDir, "gitdir"));
    // Without it Git does not list the worktree either.
    if (pointer === null) continue;
    const dotGit = resolveFrom(gitDir, decode(pointer).replace(/[\r\n]+$/, ""));
    const entry = await described(platform, git, parentOf(dotGit) ?? "/", gitDir, commonDir);
    if (entry !== null) entries.push(entry);
  }
  return entries;
}

/** Null for one that a 'git worktree add' is just making, or giving up: it has no HEAD yet, or no more. */
async function described(
  platform: Platform,
  git: Git,
  recordedRoot: string,
  gitDir: string,
  commonDir: string,
): Promise<WorktreeEntry | null> {
  const isWhole = async () =>
    (await platform.files.lstat(joinPath(gitDir, "HEAD"))) !== null &&
    (await platform.files.lstat(joinPath(gitDir, "commondir"))) !== null;
  if (!(await isWhole())) return null;
  try {
    return await describe(platform, git, recordedRoot, gitDir, commonDir);
  } catch (error) {
    // Gone between two looks.
    if (error instanceof CotenantError && !(await isWhole())) return null;
    throw error;
  }
}

async function describe(
  platform: Platform,
  git: Git,
  recordedRoot: string,
  gitDir: string,
  commonDir: string,
): Promise<WorktreeEntry> {
  const { files } = platform;
  const isMain = gitDir === commonDir;
  const standing = isMain ? null : await standingOf(platform, recordedRoot, gitDir);
  const exists = isMain ? (await files.lstat(recordedRoot)) !== null : standing === "there";
  const root = (exists ? await files.realPath(recordedRoot) : null) ?? recordedRoot;
  const branch = await currentBranch(platform, git, gitDir);
  const worktreeId = exists ? await idOf(platform, git, { worktreeRoot: root, gitDir, commonDir }) : null;
  return { root, gitDir, branch, worktreeId, exists, isReplaced: standing === "replaced", isMain };
}

/** What is at the place of a linked worktree. A `.git` that leads nowhere is one that 'git worktree repair' may mend. */
export async function standingOf(
  { files }: Pick<Platform, "files">,
  root: string,
  gitDir: string,
): Promise<"there" | "gone" | "replaced"> {
  const found = await readDotGit(files, root);
  if (found === null) return "gone";
  return found === "odd" || found.gitDir === (await files.realPath(gitDir)) ? "there" : "replaced";
}

/** One worktree's newer or unreadable file must not hide the others. */
async function idOf(platform: Platform, git: Git, place: WorktreePlace): Promise<WorktreeId | null> {
  try {
    return (await readWorktreeIdentity(platform, git, place)).identity.worktreeId;
  } catch (error) {
    if (error instanceof CotenantError) return null;
    throw error;
  }
}
