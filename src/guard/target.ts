import { canonicalPath } from "../identity/paths";
import type { Repository } from "../identity/repository";
import { dirKey, fileKey, type LeaseKey } from "../kernel/keys";
import { isRefusal } from "../kernel/refusal";
import { repositoryOf } from "./place";
import type { World } from "./world";

/** One thing that is about to be written. */
export interface Target {
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
  readonly targets: readonly Target[];
}

/** A path as a tool names it. */
export interface Named {
  readonly path: string;
  readonly mode: "take" | "look";
}

/** By the worktree that each path really lies in. What lies in none, or is not Git's business, is left out. */
export async function locate(world: World, cwd: string, named: readonly Named[]): Promise<Group[]> {
  const groups = new Map<string, { repository: Repository; targets: Map<string, Target> }>();
  const known = new Map<string, Repository | null>();
  for (const { path, mode } of named) {
    const whole = path.startsWith("/") || /^[A-Za-z]:\//.test(path) ? path : `${cwd}/${path}`;
    const directory = whole.slice(0, Math.max(1, whole.lastIndexOf("/")));
    let repository = known.get(directory);
    if (repository === undefined || (await mayBeElsewhere(world, whole))) {
      repository = await repositoryOf(world, whole);
      known.set(directory, repository);
    }
    if (repository === null) continue;
    const target = await targetIn(world, repository, whole, mode);
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

/** A link may lead into another repository than the directory it is in. */
async function mayBeElsewhere({ platform }: World, path: string): Promise<boolean> {
  try {
    return (await platform.files.lstat(path))?.kind === "symlink";
  } catch {
    return false;
  }
}

async function targetIn(
  { platform }: World,
  repository: Repository,
  whole: string,
  mode: Target["mode"],
): Promise<Target | null> {
  const place = await canonicalPath(platform, repository, repository.worktreeRoot, whole);
  // Git's own directory, a link that leads nowhere, a name that Git could not store: nothing to be leased.
  if (isRefusal(place) || place.worktreeRoot !== repository.worktreeRoot) return null;
  const isDirectory = place.isDirectory === true || place.path === ".";
  const key = isDirectory ? dirKey(place.path) : fileKey(place.path);
  if (isRefusal(key)) return null;
  return { key, path: place.path, absolutePath: place.absolutePath, mode: isDirectory ? "look" : mode };
}
