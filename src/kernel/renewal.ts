import type { Circumstances } from "./circumstances";
import type { Actor } from "./commands";
import type { Lease } from "./lease";
import { LIMITS } from "./policy";
import { elapsedMs, type Instant, instantOf, later, type Now, remainingMs } from "./time";
import { isStale, timeLeftMs, type ValidityRules } from "./validity";

/**
 * What a sign of life of its session does for a valid lease: clears stop-idle, renews what is below half of
 * its TTL, never past its total lifetime. Null when nothing is due.
 */
export function upkeep(lease: Lease, actor: Actor, at: Circumstances): Lease | null {
  if (upkeepDueInMs(lease, at.now, at.policy) > 0) return null;
  const now = instantOf(at.now);
  const lastBeat = beatOf(lease, at.now, at.policy);
  const awake = lease.stopIdleAt === null ? lease : { ...lease, stopIdleAt: null, lastBeat };
  if (lease.expiresAt === null) return { ...awake, lastBeat };

  const unrenewed = awake === lease ? null : awake;
  const leftMs = timeLeftMs(lease, at.now);
  if (leftMs > lease.ttlSecs * 500) return unrenewed;
  const forMs = Math.min(lease.ttlSecs * 1000, remainingMs(endOfLifetime(lease), at.now));
  if (forMs <= leftMs) return unrenewed;
  return { ...stampedBy(awake, actor), renewedAt: now, lastBeat: now, expiresAt: later(now, forMs) };
}

/** For a holder that asks again, and for longer than before. Never past the total lifetime, and never a shorter time. */
export function extended(lease: Lease, ttlSecs: number, actor: Actor, at: Circumstances): Lease {
  if (lease.expiresAt === null || ttlSecs <= lease.ttlSecs) return lease;
  const now = instantOf(at.now);
  const forMs = Math.min(ttlSecs * 1000, remainingMs(endOfLifetime(lease), at.now));
  if (forMs <= timeLeftMs(lease, at.now)) return lease;
  return {
    ...stampedBy(lease, actor),
    ttlSecs,
    renewedAt: now,
    lastBeat: now,
    expiresAt: later(now, forMs),
  };
}

const BEAT_EVERY_MS = 60_000;

/** When a valid lease next needs a sign of life of its session; until then `upkeep` has nothing to do. */
export function upkeepDueInMs(lease: Lease, now: Now, rules: ValidityRules): number {
  if (lease.stopIdleAt !== null) return 0;
  if (isStale(lease, now, rules)) return Number.POSITIVE_INFINITY;
  if (lease.expiresAt !== null) return timeLeftMs(lease, now) - lease.ttlSecs * 500;
  // A beat read on another clock compares by the wall only, which may be off: it is restated.
  if (lease.lastBeat.clockId !== now.clockId) return 0;
  // Leases without a clock of their own still show signs of life, but not with every keystroke; and two
  // beats must fit into the time after which their absence counts.
  const shortestMs = Math.min(rules.unknownTtlSecs, rules.staleThresholdSecs) * 500;
  return Math.min(BEAT_EVERY_MS, shortestMs) - elapsedMs(lease.lastBeat, now);
}

/**
 * The last beat after a sign of life. Not of a stale lease: its holder was away for so long that it must say itself that it
 * still wants it, and only a renewal does.
 */
function beatOf(lease: Lease, now: Now, rules: ValidityRules): Instant {
  return isStale(lease, now, rules) ? lease.lastBeat : instantOf(now);
}

/** `acquired_at + max_total_secs`. */
export function endOfLifetime(lease: Lease): Instant {
  return later(lease.acquiredAt, (lease.maxTotalSecs ?? LIMITS.ttlSecs) * 1000);
}

/** A handed-over lease becomes the caller's, on the caller's clock. Its expiry stays where it is. */
export function adopt(lease: Lease, actor: Actor, secretHash: string, at: Circumstances): Lease {
  const { now, policy } = at;
  return {
    ...lease,
    sessionId: actor.sessionId,
    branch: actor.branch,
    holder: actor.holder,
    expiresAt: restated(lease, now),
    secretHash,
    lastBeat: beatOf(lease, now, policy),
  };
}

/** The same instant, on the clock of whoever looks now. */
export function restated(lease: Lease, now: Now): Instant | null {
  if (lease.expiresAt === null || lease.expiresAt.clockId === now.clockId) return lease.expiresAt;
  return later(instantOf(now), timeLeftMs(lease, now));
}

/**
 * For whoever writes a new expiry: uptime counts against a lease on its holder's machine, so the expiry must
 * have been read there. Only for TTL-bound leases, to which the process means nothing.
 */
function stampedBy(lease: Lease, actor: Actor): Lease {
  if (lease.bind !== "ttl" || lease.holder.machineId === actor.holder.machineId) return lease;
  return { ...lease, holder: actor.holder };
}
