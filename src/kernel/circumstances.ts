import type { Fact, FactName, FactRecord } from "./facts";
import type { LeaseId } from "./ids";
import { kindOf } from "./keys";
import type { Lease } from "./lease";
import type { Policy } from "./policy";
import type { Ticket } from "./tickets";
import type { Now } from "./time";
import { isStale, type Liveness, type Standing, standing } from "./validity";
import type { ClaimEvent } from "./view";

/** Everything outside the log that a decision may depend on, gathered in the same critical section. */
export interface Circumstances {
  readonly now: Now;
  readonly policy: Policy;
  /** Of process-bound leases; one that is not named is unknown. */
  readonly liveness: ReadonlyMap<LeaseId, Liveness>;
  /** Every live ticket, the asker's own among them: a number whose ticket is not here is no place in the queue. */
  readonly tickets: readonly Ticket[];
  /** Those that `needsOf` names for the command, as far as there are any. */
  readonly facts?: ReadonlyMap<FactName, FactRecord>;
}

export interface Decision {
  /** Null when there is nothing to write: an idempotent repetition. */
  readonly event: ClaimEvent | null;
  /**
   * The leases the command was about, as they stand after it; for a release, as they were. An acquire names
   * those of the asked keys first, then what it adopted along with them.
   */
  readonly leases: readonly Lease[];
  /** What is remembered from now on, in the event's own line; null takes it back. */
  readonly facts?: ReadonlyMap<FactName, Fact | null>;
}

export function standingOf(lease: Lease, at: Circumstances): Standing {
  return standing(lease, at.now, at.liveness.get(lease.leaseId) ?? "unknown", at.policy);
}

/**
 * Somebody writes under it at this moment, so that nobody may end it but its holder and its time. One without an
 * expiry whose holder has not been heard of for too long is not live in this sense: else it would never end.
 */
export function isLiveWriterLock(lease: Lease, at: Circumstances): boolean {
  const isWriterLock = kindOf(lease.key) === "worktree";
  return isWriterLock && standingOf(lease, at) === "valid" && !isStale(lease, at.now, at.policy);
}
