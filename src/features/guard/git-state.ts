import { dirtyPaths as dirtyIn, pathspecsOf } from "../../identity/dirty-paths";
import { gitPath } from "../../identity/paths";
import { fileKey, type LeaseKey, nameOf } from "../../kernel/keys";
import { isRefusal } from "../../kernel/refusal";
import type { GuardedWorktree } from "./worktree";

/** What Git says of a worktree, for the rare events that ask it. */
type Asking = Pick<GuardedWorktree, "world" | "repository">;

/** Which of these files differ from HEAD: changed, staged, new and not ignored, or gone. */
export async function dirtyKeys(asking: Asking, keys: readonly LeaseKey[]): Promise<Set<LeaseKey>> {
  if (keys.length === 0) return new Set();
  const wanted = new Set(keys);
  const found = new Set<LeaseKey>();
  for (const path of await dirtyPaths(asking, pathspecsOf(keys.map(nameOf)))) {
    const key = keyOf(asking, path);
    if (key !== null && wanted.has(key)) found.add(key);
  }
  return found;
}

/** All of them, from the worktree's root. */
export function dirtyPaths({ world, repository }: Asking, pathspecs: readonly string[]): Promise<string[]> {
  return dirtyIn(world.git, repository.worktreeRoot, pathspecs);
}

export function keyOf({ repository }: Pick<GuardedWorktree, "repository">, path: string): LeaseKey | null {
  const canonical = gitPath(repository, path.replace(/\/$/, ""));
  const key = isRefusal(canonical) ? canonical : fileKey(canonical);
  return isRefusal(key) ? null : key;
}

/** When HEAD last moved in this worktree; 0 where that cannot be told. */
export async function headMovedAtMs({ world, repository }: Asking): Promise<number> {
  const { files } = world.platform;
  const stats = await Promise.all(
    ["logs/HEAD", "HEAD"].map(async (name) => files.stat(`${repository.gitDir}/${name}`)),
  );
  return Math.max(0, ...stats.map((stat) => stat?.mtimeMs ?? 0));
}
