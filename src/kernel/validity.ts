import { type EndCause, isIndefinite, type Lease } from "./lease";
import { bootOf, elapsedMs, type Instant, isUptime, type Now, remainingMs } from "./time";

export type Liveness = "alive" | "dead" | "unknown";

export interface ValidityRules {
  readonly stopIdleSecs: number;
  readonly unknownTtlSecs: number;
  readonly staleThresholdSecs: number;
}

export type Standing = "valid" | EndCause;

/**
 * The one function that says whether a lease still excludes others. Everything asks it: grants, renewals,
 * guarded writes, status, waiting.
 */
export function standing(lease: Lease, now: Now, liveness: Liveness, rules: ValidityRules): Standing {
  if (timeLeftMs(lease, now) <= 0) return "expired";
  if (lease.stopIdleAt !== null && sinceMs(lease.stopIdleAt, lease, now) >= rules.stopIdleSecs * 1000)
    return "stop_idle";
  if (lease.bind === "process") {
    if (liveness === "dead") return "dead";
    // A live owner never loses a file to the clock; one that cannot be seen must have been heard of lately.
    if (liveness === "unknown" && elapsedMs(lease.lastBeat, now) >= rules.unknownTtlSecs * 1000)
      return "expired";
  }
  return "valid";
}

/** Until the expiry, as far as clocks are concerned; infinite without one. */
export function timeLeftMs(lease: Lease, now: Now): number {
  const { expiresAt } = lease;
  if (expiresAt === null) return Number.POSITIVE_INFINITY;
  const left = remainingMs(expiresAt, now);
  if (!hasRebootedSince(expiresAt, lease, now)) return left;
  // The clock may have booted into the past for want of a battery: what the machine has been up for counts
  // too. A renewal for a shorter TTL leaves the longer expiry, so the TTL alone may be too little.
  const lifetime = Math.max(lease.ttlSecs * 1000, expiresAt.wallMs - lease.renewedAt.wallMs);
  return Math.min(left, lifetime - now.monotonicMs);
}

function sinceMs(instant: Instant, lease: Lease, now: Now): number {
  const elapsed = elapsedMs(instant, now);
  return hasRebootedSince(instant, lease, now) ? Math.max(elapsed, now.monotonicMs) : elapsed;
}

/**
 * Whether the machine that `now` was read on has booted since the instant, so that its uptime has passed in
 * any case. Never so for another machine, or in a time namespace of its own, whose uptime says nothing: PROTOCOL 13
 * taken to the letter would let either of them, after a long uptime, see every lease as expired at once.
 */
function hasRebootedSince(instant: Instant, lease: Lease, now: Now): boolean {
  return (
    bootOf(instant.clockId) !== bootOf(now.clockId) &&
    lease.holder.machineId === now.machineId &&
    now.machineId !== "" &&
    isUptime(now)
  );
}

/** A stale lease still excludes others, but no guarded write may use it until it is renewed. */
export function isStale(lease: Lease, now: Now, rules: ValidityRules): boolean {
  return isIndefinite(lease) && elapsedMs(lease.lastBeat, now) > rules.staleThresholdSecs * 1000;
}
