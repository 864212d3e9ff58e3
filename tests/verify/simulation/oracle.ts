import type { Lease } from "../../../src/kernel/lease";
import type { SimProcess } from "../../../testing/simulator";
import type { Chronicle, Moment } from "./chronicle";

/**
 * The rules of leases once more, in the plainest words, and from what only an onlooker knows: when things really
 * happened, and who is really alive. Nothing here uses the kernel, so that a mistake there shows.
 */

export interface Extent {
  readonly key: string;
  readonly reach: string;
  readonly worktreeId: string;
}

export function overlaps(a: Extent, b: Extent): boolean {
  if (a.reach === "worktree" && b.reach === "worktree" && a.worktreeId !== b.worktreeId) return false;
  return a.key === b.key || contains(a.key, b.key) || contains(b.key, a.key);
}

/** Whether the first is a directory with the second inside. */
function contains(directory: string, key: string): boolean {
  if (!directory.startsWith("dir:") || !/^(file|dir):/.test(key)) return false;
  const path = key.slice(key.indexOf(":") + 1);
  if (directory === "dir:.") return path !== ".";
  return path.startsWith(`${directory.slice("dir:".length)}/`);
}

export interface Party {
  readonly agentId: string;
  readonly sessionId: string;
  readonly worktreeId: string;
}

export function isSameParty(a: Party, b: Party): boolean {
  return a.agentId === b.agentId && a.sessionId === b.sessionId && a.worktreeId === b.worktreeId;
}

/** Handed over, and not yet adopted: any session of that agent in that worktree may come for it. */
export function isHandedTo(lease: Lease, party: Party): boolean {
  return (
    lease.secretHash === null && lease.agentId === party.agentId && lease.worktreeId === party.worktreeId
  );
}

/** Of the policy that stories run under. */
export const STOP_IDLE_MS = 30_000;
export const UNKNOWN_TTL_MS = 1_800_000;
const STALE_MS = 3_600_000;
const GRACE_MS = 2_000;
const INITIAL_TIME_NAMESPACE = "4026531834";

export type Lapse = "expired" | "stop_idle" | "dead";

/** A process as it was known when it ran: by its start time and pid, whoever has that pid now. */
export interface Known {
  readonly process: SimProcess;
  /** When it died, if it did. */
  readonly died: Moment | null;
}

/** Whoever looks: its namespaces decide which clocks and processes it can compare with. */
export interface Viewer {
  readonly clockId: string;
  readonly offsetMs: number;
  readonly bootId: string;
  readonly pidNamespace: string;
  readonly timeNamespace: string;
}

/** Why a lease no longer excludes others, for this viewer at that moment; null while it does. */
export function lapseOf(
  lease: Lease,
  viewer: Viewer,
  at: Moment,
  chronicle: Chronicle,
  isDead: (lease: Lease, at: Moment) => boolean,
): Lapse | null {
  const monotonicMs = at.elapsedMs - chronicle.bootedAtMs(at.bootId) + viewer.offsetMs;
  // In a time namespace of its own, whose clock may have been set ahead, nobody knows how long the machine has been up.
  const hasRebooted = (instant: { clockId: string }) =>
    viewer.timeNamespace === INITIAL_TIME_NAMESPACE && !instant.clockId.startsWith(viewer.bootId);
  const { expiresAt, stopIdleAt } = lease;
  if (expiresAt !== null) {
    if (expiresAt.clockId === viewer.clockId) {
      if (monotonicMs >= expiresAt.monotonicMs) return "expired";
    } else {
      if (at.wallMs >= expiresAt.wallMs + GRACE_MS) return "expired";
      const lifetime = Math.max(lease.ttlSecs * 1000, expiresAt.wallMs - lease.renewedAt.wallMs);
      if (hasRebooted(expiresAt) && monotonicMs >= lifetime) return "expired";
    }
  }
  if (stopIdleAt !== null) {
    const since = sinceMs(stopIdleAt, viewer, at, chronicle);
    if (since >= STOP_IDLE_MS || (hasRebooted(stopIdleAt) && monotonicMs >= STOP_IDLE_MS)) return "stop_idle";
  }
  if (lease.bind !== "process") return null;
  const { holder, lastBeat } = lease;
  if (holder.bootId !== viewer.bootId) return "dead";
  const canSee = holder.pidNamespace === viewer.pidNamespace && holder.timeNamespace === viewer.timeNamespace;
  if (canSee) return isDead(lease, at) ? "dead" : null;
  return sinceMs(lastBeat, viewer, at, chronicle) >= UNKNOWN_TTL_MS ? "expired" : null;
}

/** Without an expiry, and not heard of for so long that people may end it, also a writer lock. */
export function isStale(lease: Lease, viewer: Viewer, at: Moment, chronicle: Chronicle): boolean {
  if (lease.expiresAt !== null || lease.bind === "process") return false;
  return sinceMs(lease.lastBeat, viewer, at, chronicle) > STALE_MS;
}

function sinceMs(instant: Lease["lastBeat"], viewer: Viewer, at: Moment, chronicle: Chronicle): number {
  if (instant.clockId !== viewer.clockId) return at.wallMs - instant.wallMs;
  return at.elapsedMs - chronicle.bootedAtMs(at.bootId) + viewer.offsetMs - instant.monotonicMs;
}
