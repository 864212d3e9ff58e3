import { gitPath } from "../identity/paths";
import { fileKey, type LeaseKey, nameOf } from "../kernel/keys";
import { isRefusal } from "../kernel/refusal";
import type { Place } from "./place";

/** What Git says of a worktree, for the rare events that ask it. */
type Asking = Pick<Place, "world" | "repository">;

const GIT_MS = 8_000;
/** Beyond this, the whole worktree is asked for: an argument list has its limits. */
const MOST_PATHS = 500;

/** Which of these files differ from HEAD: changed, staged, new and not ignored, or gone. */
export async function dirtyKeys(asking: Asking, keys: readonly LeaseKey[]): Promise<Set<LeaseKey>> {
  if (keys.length === 0) return new Set();
  const wanted = new Set(keys);
  const found = new Set<LeaseKey>();
  const paths = keys.length > MOST_PATHS ? [] : keys.map((key) => `:(top,literal)${nameOf(key)}`);
  for (const path of await dirtyPaths(asking, paths)) {
    const key = keyOf(asking, path);
    if (key !== null && wanted.has(key)) found.add(key);
  }
  return found;
}

/** All of them, from the worktree's root. */
export async function dirtyPaths(
  { world, repository }: Asking,
  pathspecs: readonly string[],
): Promise<string[]> {
  const { status, stdout } = await world.git.run(
    ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--", ...pathspecs],
    // Git would refresh the index on the way, and may meet somebody else's commit there.
    { cwd: repository.worktreeRoot, timeoutMs: GIT_MS, env: { GIT_OPTIONAL_LOCKS: "0" } },
  );
  if (status !== 0) return [];
  return new TextDecoder()
    .decode(stdout)
    .split("\0")
    .filter((entry) => entry.length > 3)
    .map((entry) => entry.slice(3));
}

export function keyOf({ repository }: Pick<Place, "repository">, path: string): LeaseKey | null {
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
