import { isKnownByProcess } from "../../../identity/family-note";
import { harnessIn, harnessVariables } from "../../../identity/harness";
import type { Processes, Started } from "../../../platform/platform";
import type { GuardedWorktree } from "../worktree";
import type { ShellNote } from "./notes";

/** What a command may have left running: its own, or something of which nobody can say whose it is. */
export type LeftRunning = "its own" | "perhaps" | "nothing";

type Marked = Pick<ShellNote, "since" | "harness" | "ids">;

/**
 * Whether something that a command has started is still there. That is what the harness has started since, at however many
 * removes, and what nobody is left to answer for that stands in the worktree: whoever goes to the background has often lost
 * its parent. Others leave such processes there, too: every harness marks what its shell starts, most with the session.
 */
export async function leftRunning(
  { world, who, repository }: GuardedWorktree,
  note: Marked,
): Promise<LeftRunning> {
  const { processes } = world.platform;
  const all = await processes.startedSince(note.since);
  if (all === null || all.length === 0) return "nothing";
  const byPid = new Map(all.map((one) => [one.pid, one]));
  const harness = who.holder.pid;
  const above = new Set(await pathUp(processes, harness));
  // This very hook, whatever stands between it and the harness, and what they have started.
  const path = await pathUp(processes, processes.self().pid);
  const ours = new Set(path.includes(harness) ? path.slice(0, path.indexOf(harness)) : path.slice(0, 1));
  let left: LeftRunning = "nothing";
  for (const one of all) {
    if (one.pid === harness || above.has(one.pid) || isOf(ours, one, byPid, harness)) continue;
    const origin = originOf(one, byPid, harness);
    if (origin === harness || (await pathUp(processes, origin)).includes(harness)) {
      // One process may run several sessions, and starts helpers of its own, too.
      const whose = await kinship(processes, one, note);
      if (whose === "its own" || whose === "unknown") return "its own";
      if (whose === "unmarked") left = "perhaps";
      continue;
    }
    const isOrphan = origin <= 1 || above.has(origin);
    if (!isOrphan || !isInside(one.directory, repository.worktreeRoot)) continue;
    const whose = await kinship(processes, one, note);
    if (whose === "its own") return "its own";
    if (whose === "unknown") left = "perhaps";
  }
  return left;
}

type Kinship = "its own" | "another session's" | "unmarked" | "unknown";

/** Whose a process is, by the environment that it was started with. */
async function kinship(
  processes: Processes,
  { pid }: Started,
  { harness, ids = [] }: Marked,
): Promise<Kinship> {
  const variables = harness === undefined ? null : await processes.variables(pid, harnessVariables());
  if (variables === null || harness === undefined) return "unknown";
  const marked = harnessIn(variables, harness);
  if (marked === null) return "unmarked";
  if (marked.sessionId === null || ids.length === 0) return "unknown";
  if (ids.includes(marked.sessionId)) return "its own";
  // A subagent's shell may have an id there that no event names.
  return isKnownByProcess(marked) ? "unknown" : "another session's";
}

/** Whether it is one of these, or was started by one of them below the harness, at however many removes. */
function isOf(
  these: ReadonlySet<number>,
  one: Started,
  byPid: ReadonlyMap<number, Started>,
  harness: number,
): boolean {
  let at: Started | undefined = one;
  for (let more = byPid.size; more >= 0 && at !== undefined && at.pid !== harness; more--) {
    if (these.has(at.pid) || these.has(at.parentPid)) return true;
    at = byPid.get(at.parentPid);
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
