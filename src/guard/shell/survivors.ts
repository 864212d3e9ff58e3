import type { Processes, Started } from "../../platform/platform";
import type { Place } from "../place";

/**
 * Whether something that a command has started is still there. That is what the harness has started since, at however many
 * removes, and what nobody is left to answer for that stands in the worktree: whoever goes to the background has often lost
 * its parent.
 */
export async function hasSurvivors(
  { world, who, repository }: Place,
  { since }: { readonly since: string },
): Promise<boolean> {
  const { processes } = world.platform;
  const all = await processes.startedSince(since);
  if (all === null || all.length === 0) return false;
  const byPid = new Map(all.map((one) => [one.pid, one]));
  const harness = who.holder.pid;
  const above = new Set(await pathUp(processes, harness));
  // This very hook, and whatever stands between it and the harness.
  const ours = new Set(await pathUp(processes, processes.self().pid));
  for (const one of all) {
    if (ours.has(one.pid) || one.pid === harness) continue;
    const origin = originOf(one, byPid, harness);
    if (origin === harness || (await pathUp(processes, origin)).includes(harness)) return true;
    const isOrphan = origin <= 1 || above.has(origin);
    if (isOrphan && isInside(one.directory, repository.worktreeRoot)) return true;
  }
  return false;
}

/** The harness, or the nearest of its ancestors that was there before. */
function originOf(one: Started, byPid: ReadonlyMap<number, Started>, harness: number): number {
  let at: Started = one;
  for (let more = byPid.size; more > 0 && at.parentPid !== harness; more--) {
    const parent = byPid.get(at.parentPid);
    if (parent === undefined) break;
    at = parent;
  }
  return at.parentPid;
}

const MOST_GENERATIONS = 64;

/** Itself, and all that are above it. */
async function pathUp(processes: Processes, pid: number): Promise<number[]> {
  const found: number[] = [];
  for (let at = pid; at > 1 && found.length < MOST_GENERATIONS; ) {
    found.push(at);
    at = (await processes.ancestry(at))?.parentPid ?? 0;
  }
  return found;
}

function isInside(directory: string | null, root: string): boolean {
  return directory !== null && (directory === root || directory.startsWith(`${root}/`));
}
