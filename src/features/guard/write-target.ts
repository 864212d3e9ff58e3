import { nameIn, parentOf } from "../../identity/path-text";
import { type CanonicalPath, canonicalPath, gitPath } from "../../identity/paths";
import type { Repository } from "../../identity/repository";
import { dirKey, fileKey, type LeaseKey } from "../../kernel/keys";
import { isRefusal, type Refusal } from "../../kernel/refusal";
import type { FileStat } from "../../platform/platform";
import { Links } from "./links";
import { repositoryOf } from "./worktree";
import type { World } from "./world";

/** One thing that is about to be written. */
export interface WriteTarget {
  readonly key: LeaseKey;
  /** As people write it: from the worktree's root. */
  readonly path: string;
  /** The real file. */
  readonly absolutePath: string;
  /**
   * `take`: the session gets a lease on it. `look`: nobody else may hold anything in it; for commands that go over a
   * whole directory, which no agent should hold for longer than they take.
   */
  readonly mode: "take" | "look";
}

/** Targets of one worktree. */
export interface Group {
  readonly repository: Repository;
  readonly targets: readonly WriteTarget[];
}

/** A path as a tool names it. */
export interface Named {
  readonly path: string;
  readonly mode: "take" | "look";
  /** A link of that name is itself meant, not what it leads to. */
  readonly isEntry?: boolean;
}

/** Groups paths by the worktree that they really lie in. What lies in none, or is not Git's business, is left out. */
export async function locate(world: World, cwd: string, named: readonly Named[]): Promise<Group[]> {
  const { files } = world.platform;
  const groups = new Map<string, { repository: Repository; targets: Map<string, WriteTarget> }>();
  const links = new Links(files);
  for (const { path, mode, isEntry } of named) {
    const absolute = path.startsWith("/") || /^[A-Za-z]:\//.test(path) ? path : `${cwd}/${path}`;
    const whole = await links.follow(absolute, isEntry);
    const kind = await kindAt(world, whole);
    // A directory may be a repository of its own.
    const around = kind === "directory" ? whole : (parentOf(whole) ?? "/");
    const repository = await repositoryOf(world, around);
    if (repository === null) continue;
    // Still a link here: the link itself is meant.
    const place = await (kind === "symlink" ? linkIn : canonicalIn)(world, repository, whole);
    const target = isRefusal(place) ? null : targetOf(repository, place, mode);
    if (target === null) continue;
    const group = groups.get(repository.worktreeRoot) ?? { repository, targets: new Map() };
    groups.set(repository.worktreeRoot, group);
    if (group.targets.get(target.key)?.mode !== "take") group.targets.set(target.key, target);
  }
  return [...groups.values()].map(({ repository, targets }) => ({
    repository,
    targets: [...targets.values()],
  }));
}

async function kindAt({ platform }: World, path: string): Promise<FileStat["kind"] | null> {
  try {
    return (await platform.files.lstat(path))?.kind ?? null;
  } catch {
    return null;
  }
}

/** Null for Git's own directory, a circle of links, a name that Git could not store: nothing to be leased. */
function targetOf(
  { worktreeRoot }: Repository,
  { path, absolutePath, ...place }: CanonicalPath,
  mode: WriteTarget["mode"],
): WriteTarget | null {
  if (place.worktreeRoot !== worktreeRoot) return null;
  const isDirectory = place.isDirectory === true || path === ".";
  const key = isDirectory ? dirKey(path) : fileKey(path);
  return isRefusal(key) ? null : { key, path, absolutePath, mode: isDirectory ? "look" : mode };
}

function canonicalIn({ platform }: World, repository: Repository, whole: string) {
  return canonicalPath(platform, repository, repository.worktreeRoot, whole);
}

/** A link itself: only the directories on the way to it are looked up. */
async function linkIn(world: World, repository: Repository, whole: string): Promise<CanonicalPath | Refusal> {
  const directory = await canonicalIn(world, repository, parentOf(whole) ?? "/");
  if (isRefusal(directory)) return directory;
  const name = nameIn(whole);
  const path = gitPath(repository, directory.path === "." ? name : `${directory.path}/${name}`);
  return isRefusal(path) ? path : { ...directory, path, absolutePath: whole, isDirectory: false };
}
