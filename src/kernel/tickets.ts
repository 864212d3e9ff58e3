import { type Extent, ExtentIndex } from "./conflicts";
import type { AgentId, SessionId, WorktreeId } from "./ids";
import type { LeaseKey } from "./keys";
import {
  belongsTo,
  effectiveReach,
  type Holder,
  type Lease,
  type Party,
  type Reach,
  sameParty,
} from "./lease";
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
const TURN_MS = 5_000;

export function isVoid(ticket: Ticket, now: Now, liveness: Liveness): boolean {
  if (liveness === "dead" || remainingMs(ticket.expiresAt, now) <= 0) return true;
  return ticket.freeSince !== null && remainingMs(ticket.freeSince, now) <= -TURN_MS;
}

type Wanted = readonly { readonly key: LeaseKey; readonly reach: Reach }[];

export function wantsSame(
  a: { keys: Wanted; worktreeId: WorktreeId },
  b: { keys: Wanted; worktreeId: WorktreeId },
): boolean {
  return meets(new ExtentIndex(extentsOf(a)), b);
}

/** Valid leases of others that keep a ticket waiting. */
export function inTheWay(ticket: Ticket, validLeases: Iterable<Lease>): Lease[] {
  const wanted = new ExtentIndex(extentsOf(ticket));
  return [...validLeases].filter((lease) => !belongsTo(lease, ticket) && wanted.conflictsWith(lease));
}

/** Who asks for what: with a ticket, from its place in the queue; without one, from its end. */
interface Asker extends Party {
  readonly keys: Wanted;
  readonly ticket: number | null;
}

/**
 * Tickets that the asker must let go first: live, ahead of its own, wanting the same, of another holder. A
 * ticket does not bind whoever holds a lease it waits for, or that lease might never be freed.
 */
export function ticketsAhead(
  asker: Asker,
  liveTickets: readonly Ticket[],
  validLeases: readonly Lease[],
): Ticket[] {
  return liveTickets.length === 0 ? [] : liveTickets.filter(bindsThe(asker, liveTickets, validLeases));
}

/** Whether a waiter could take its keys now. One that does not for `TURN_MS` loses its place. */
export function isItsTurn(
  ticket: Ticket,
  liveTickets: readonly Ticket[],
  validLeases: readonly Lease[],
): boolean {
  if (inTheWay(ticket, validLeases).length > 0) return false;
  return !liveTickets.some(bindsThe({ ...ticket, ticket: ticket.number }, liveTickets, validLeases));
}

function bindsThe(
  asker: Asker,
  liveTickets: readonly Ticket[],
  validLeases: readonly Lease[],
): (ticket: Ticket) => boolean {
  const place = placeOf(asker, liveTickets);
  const wanted = new ExtentIndex(extentsOf(asker));
  const held = new ExtentIndex(
    validLeases.filter((lease) => lease.agentId === asker.agentId && lease.sessionId === asker.sessionId),
  );
  const waitsForAsker = (ticket: Ticket) =>
    extentsOf(ticket).some((extent) =>
      held.conflictingWith(extent).some((lease) => !belongsTo(lease, ticket)),
    );
  return (ticket) =>
    ticket.number < place && !sameParty(ticket, asker) && meets(wanted, ticket) && !waitsForAsker(ticket);
}

/** A number is a place in the queue only as long as its ticket lives: whoever lost it stands at the end. */
function placeOf(asker: Asker, liveTickets: readonly Ticket[]): number {
  const own = liveTickets.some((ticket) => ticket.number === asker.ticket && sameParty(ticket, asker));
  return own && asker.ticket !== null ? asker.ticket : Number.POSITIVE_INFINITY;
}

export function extentsOf(wanting: { keys: Wanted; worktreeId: WorktreeId }): Extent[] {
  const { worktreeId } = wanting;
  return wanting.keys.map(({ key, reach }) => ({ key, reach: effectiveReach(key, reach), worktreeId }));
}

export function meets(
  index: ExtentIndex<Extent>,
  wanting: { keys: Wanted; worktreeId: WorktreeId },
): boolean {
  return extentsOf(wanting).some((extent) => index.conflictsWith(extent));
}
