import type { AgentId, LeaseId } from "./ids";
import type { Lease } from "./lease";
import { inTheWay, type Ticket } from "./tickets";
import { elapsedMs, type Instant, type Now } from "./time";

/** Somebody who cannot go on before certain leases have ended. */
export interface Contender {
  readonly agentId: AgentId;
  readonly since: Instant;
  readonly leaseIds: readonly LeaseId[];
}

/** A lease that somebody has been kept waiting by for too long. */
export interface Escalated {
  readonly lease: Lease;
  /** Everybody who waits for it now, the longest first. */
  readonly contenders: readonly Contender[];
}

export function contendersIn(tickets: readonly Ticket[], validLeases: readonly Lease[]): Contender[] {
  return tickets.map((ticket) => ({
    agentId: ticket.agentId,
    since: ticket.joinedAt,
    leaseIds: inTheWay(ticket, validLeases).map(({ leaseId }) => leaseId),
  }));
}

/**
 * Held and contended for longer than that, both: neither a lease that nobody wants, nor one that somebody has only just taken
 * from under those who wait. `afterSecs` 0: none is.
 */
export function escalatedAmong(
  validLeases: readonly Lease[],
  contenders: readonly Contender[],
  now: Now,
  afterSecs: number,
): Escalated[] {
  if (afterSecs === 0) return [];
  const isLong = (since: Instant) => elapsedMs(since, now) >= afterSecs * 1000;
  return validLeases.flatMap((lease) => {
    const waiting = contenders
      .filter(({ leaseIds }) => leaseIds.includes(lease.leaseId))
      .sort((a, b) => elapsedMs(b.since, now) - elapsedMs(a.since, now));
    const [first] = waiting;
    const isDue = first !== undefined && isLong(first.since) && isLong(lease.acquiredAt);
    return isDue ? [{ lease, contenders: waiting }] : [];
  });
}
