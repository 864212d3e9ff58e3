import { type AgentId, type FencingToken, fencingToken, type LeaseId, type Ulid } from "./ids";
import { type Ended, type Lease, type Slot, slotOf } from "./lease";

/**
 * What the log says, or the part of it that one command needs, so that a command costs the same beside ten
 * leases and 100,000. What a part must hold for the same decision as the whole (tests/kernel/properties):
 *
 * - acquire: every lease that conflicts with an asked key from the actor's worktree; for TTL 0 every lease
 *   without expiry; where a live ticket wants the same, every lease that conflicts with the ticket's keys.
 * - transfer: the named lease; every lease that conflicts with its key from the target's worktree; if it has
 *   no expiry, every other lease without one.
 * - everything else: every lease on a named key and every named id; for gc all of them.
 * - endings by the named lease ids, and always the true `nextToken`.
 */
export interface View {
  readonly leases: ReadonlyMap<Slot, Lease>;
  /** Leases ended by anything but their holder's release, for as long as somebody may still ask. */
  readonly endings: ReadonlyMap<LeaseId, Ended>;
  readonly nextToken: FencingToken;
}

export const EMPTY_VIEW: View = {
  leases: new Map(),
  endings: new Map(),
  nextToken: fencingToken(1),
};

export const CLAIM_EVENTS = [
  "claim.acquired",
  "claim.renewed",
  "claim.heartbeat",
  "claim.released",
  "claim.evicted",
  "claim.transferred",
  "claim.stopped",
] as const;
export type ClaimEventType = (typeof CLAIM_EVENTS)[number];

/**
 * What happened, whole: every lease that now stands, every lease that now does not. It needs nothing from
 * before it to be understood, so replaying a stretch twice, or from a later start, ends in the same view.
 */
export interface ClaimEvent {
  readonly type: ClaimEventType;
  readonly leases: readonly Lease[];
  readonly ended: readonly Ended[];
  readonly reason: string | null;
  /** Not by anybody's decision here: the ledger gave it to somebody else, or never confirmed it. */
  readonly isOverruled?: boolean;
  /** By whose word somebody else's live lease ended, where `policy.approvers` asks for it. */
  readonly approval?: Approval;
}

export interface Approval {
  readonly proposalId: Ulid;
  readonly proposedBy: AgentId;
  readonly approvedBy: readonly AgentId[];
}

export function evolve(view: View, event: ClaimEvent): View {
  const leases = new Map(view.leases);
  const endings = new Map(view.endings);
  applyTo({ leases, endings }, event);
  return { leases, endings, nextToken: tokenAfter(view.nextToken, event) };
}

/** The same on maps that may be changed in place, for those who replay many events. */
export function applyTo(
  maps: { leases: Map<Slot, Lease>; endings: Map<LeaseId, Ended> },
  event: ClaimEvent,
): void {
  for (const gone of event.ended) {
    const slot = slotOf(gone);
    if (maps.leases.get(slot)?.leaseId === gone.leaseId) maps.leases.delete(slot);
    if (gone.how !== "released") maps.endings.set(gone.leaseId, gone);
  }
  for (const lease of event.leases) maps.leases.set(slotOf(lease), lease);
}

export function tokenAfter(next: FencingToken, event: ClaimEvent): FencingToken {
  let token: number = next;
  for (const lease of event.leases) token = Math.max(token, lease.fencingToken + 1);
  for (const gone of event.ended) token = Math.max(token, gone.fencingToken + 1);
  return fencingToken(token);
}

/** PROTOCOL 23: 1 + the highest of our own counter and of what is known from elsewhere; the counter follows. */
export function nextTokenAbove(
  view: View,
  { aboveToken = 0 }: { readonly aboveToken?: number },
): FencingToken {
  return fencingToken(Math.max(view.nextToken, aboveToken + 1));
}
