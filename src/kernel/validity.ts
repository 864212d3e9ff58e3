import { type EndCause, isIndefinite, type Lease } from "./lease";
import { bootOf, elapsedMs, type Now, remainingMs } from "./time";

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
  if (lease.expiresAt !== null && hasExpired(lease, now)) return "expired";
  if (lease.stopIdleAt !== null && elapsedMs(lease.stopIdleAt, now) >= rules.stopIdleSecs * 1000)
    return "stop_idle";
  if (lease.bind === "process") {
    if (liveness === "dead") return "dead";
    // A live owner never loses a file to the clock; one that cannot be seen must have been heard of lately.
    if (liveness === "unknown" && elapsedMs(lease.lastBeat, now) >= rules.unknownTtlSecs * 1000)
      return "expired";
  }
  return "valid";
}

function hasExpired(lease: Lease, now: Now): boolean {
  const expiresAt = lease.expiresAt!;
  if (remainingMs(expiresAt, now) <= 0) return true;
  // The same machine has booted since, perhaps into the past for want of a battery: what it has been up for
  // counts too. Never for another machine or another time namespace, whose uptime says nothing.
  const rebooted =
    bootOf(expiresAt.clockId) !== bootOf(now.clockId) &&
    lease.holder.machineId === now.machineId &&
    now.machineId !== "";
  return rebooted && now.monotonicMs > lease.ttlSecs * 1000;
}

/** A stale lease still excludes others, but no guarded write may use it until it is renewed. */
export function isStale(lease: Lease, now: Now, rules: ValidityRules): boolean {
  return isIndefinite(lease) && elapsedMs(lease.lastBeat, now) > rules.staleThresholdSecs * 1000;
}
