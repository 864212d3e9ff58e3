import { conflict } from "./conflicts";
import type { AgentId, SessionId, WorktreeId } from "./ids";
import type { LeaseKey } from "./keys";
import { type Holder, type Lease, type Reach, sameParty } from "./lease";
import { type Instant, type Now, remainingMs } from "./time";
import type { Liveness } from "./validity";

/** A waiter's place in the queue. Not logged: a ticket dies with its process, and losing one loses nothing. */
export interface Ticket {
  readonly number: number;
  readonly agentId: AgentId;
  readonly sessionId: SessionId;
  readonly worktreeId: WorktreeId;
  readonly keys: readonly { readonly key: LeaseKey; readonly reach: Reach }[];
  readonly holder: Holder;
  readonly joinedAt: Instant;
  readonly expiresAt: Instant;
  /** Since when its keys have been free for it to take; a waiter that does not take them loses its place. */
  readonly freeSince: Instant | null;
}

/** A stopped process must not hold up the queue behind it. */
export const TURN_MS = 5_000;

export function isVoid(ticket: Ticket, now: Now, liveness: Liveness): boolean {
  if (liveness === "dead" || remainingMs(ticket.expiresAt, now) <= 0) return true;
  return ticket.freeSince !== null && remainingMs(ticket.freeSince, now) <= -TURN_MS;
}

type Wanted = readonly { readonly key: LeaseKey; readonly reach: Reach }[];

export function wantsSame(
  a: { keys: Wanted; worktreeId: WorktreeId },
  b: { keys: Wanted; worktreeId: WorktreeId },
): boolean {
  return a.keys.some((x) =>
    b.keys.some((y) => conflict({ ...x, worktreeId: a.worktreeId }, { ...y, worktreeId: b.worktreeId })),
  );
}

/** Valid leases of others that keep a ticket waiting. */
export function inTheWay(ticket: Ticket, validLeases: Iterable<Lease>): Lease[] {
  return [...validLeases].filter(
    (lease) =>
      !sameParty(lease, ticket) &&
      ticket.keys.some((wanted) => conflict({ ...wanted, worktreeId: ticket.worktreeId }, lease)),
  );
}

/**
 * Tickets that the asker must let go first: live, ahead of its own, wanting the same, of another holder. A
 * ticket does not bind whoever holds a lease it waits for, or that lease might never be freed.
 */
export function ticketsAhead(
  asker: {
    keys: Wanted;
    agentId: AgentId;
    sessionId: SessionId;
    worktreeId: WorktreeId;
    ticket: number | null;
  },
  liveTickets: readonly Ticket[],
  validLeases: readonly Lease[],
): Ticket[] {
  return liveTickets.filter(
    (ticket) =>
      (asker.ticket === null || ticket.number < asker.ticket) &&
      !sameParty(ticket, asker) &&
      wantsSame(ticket, asker) &&
      !inTheWay(ticket, validLeases).some(
        (lease) => lease.agentId === asker.agentId && lease.sessionId === asker.sessionId,
      ),
  );
}
