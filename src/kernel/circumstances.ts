import type { LeaseId } from "./ids";
import type { Lease } from "./lease";
import type { Policy } from "./policy";
import type { Ticket } from "./tickets";
import type { Now } from "./time";
import { type Liveness, type Standing, standing } from "./validity";
import type { ClaimEvent } from "./view";

/** Everything outside the log that a decision may depend on, gathered in the same critical section. */
export interface Circumstances {
  readonly now: Now;
  readonly policy: Policy;
  /** Of process-bound leases; one that is not named is unknown. */
  readonly liveness: ReadonlyMap<LeaseId, Liveness>;
  /** Every live ticket, the asker's own among them: a number whose ticket is not here is no place in the queue. */
  readonly tickets: readonly Ticket[];
}

export interface Decision {
  /** Null when there is nothing to write: an idempotent repetition. */
  readonly event: ClaimEvent | null;
  /**
   * The leases the command was about, as they stand after it; for a release, as they were. An acquire names
   * those of the asked keys first, then what it adopted along with them.
   */
  readonly leases: readonly Lease[];
}

export function standingOf(lease: Lease, at: Circumstances): Standing {
  return standing(lease, at.now, at.liveness.get(lease.leaseId) ?? "unknown", at.policy);
}
