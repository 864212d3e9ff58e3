import { type Circumstances, type Decision, isLiveWriterLock, standingOf } from "./circumstances";
import type { Actor, Evict } from "./commands";
import { type LeaseId, printable } from "./ids";
import { type Ended, endedRecord, type Lease, sameParty } from "./lease";
import { checkCount, checkText, isGiven, LIMITS, mayEvict, needsOthers } from "./policy";
import { gone, NamedLeases, nearest } from "./proof";
import { countingApprovals, isAgreed, proposalFrom, proposalName, subjectOf } from "./proposals";
import { isRefusal, type Refusal, refuse } from "./refusal";
import type { Approval, ClaimEvent, View } from "./view";
import {
  evictedBy,
  leaseSummary,
  liveWriterLock,
  needsApproval,
  needsReason,
  notAllowedToEvict,
} from "./words";

export function decideEvict(view: View, command: Evict, at: Circumstances): Decision | Refusal {
  if (!isGiven(command.reason)) return needsReason("ending somebody's lease");
  const unfit = checkText(command.reason, "reason") ?? checkCount(command.leases.length, "leases");
  if (unfit !== null) return unfit;
  const named = new NamedLeases(view, command.leases);
  const evicted = new Map<LeaseId, Lease>();
  /** Others have to agree to these. */
  const live: Lease[] = [];
  for (const ref of command.leases) {
    const lease = meantByOnlooker(named.of(ref), command.actor, at);
    if (lease === undefined) return gone(view, ref);
    if (isRefusal(lease)) return lease;
    if (command.isOverruled !== true && isLiveWriterLock(lease, at)) return liveWriterLock(lease);
    const needsRight = command.isOverruled !== true && standingOf(lease, at) === "valid";
    if (needsRight && !mayEvict(command.actor.agentId, at.policy))
      return notAllowedToEvict(command.actor.agentId, at.policy);
    evicted.set(lease.leaseId, lease);
    if (needsRight && needsOthers(lease, command.actor, at.policy)) live.push(lease);
  }
  const { proposalId } = command;
  const name = proposalId === undefined ? null : proposalName(proposalId);
  const proposal = name === null ? null : proposalFrom(at.facts?.get(name)?.value);
  const unagreed = live.filter((lease) => !isAgreed(proposal, lease, at.now, at.policy));
  if (unagreed.length > 0) return needsApproval(unagreed.map(subjectOf), at.policy);
  const leases = [...evicted.values()];
  if (command.isTakenBack === true) {
    const ended = leases.map((lease) => endedRecord(lease, "released"));
    return { event: { type: "claim.released", leases: [], ended, reason: command.reason }, leases };
  }
  const isApproved = proposal !== null && live.length > 0;
  const by = isApproved ? proposal.proposedBy : command.actor.agentId;
  const approvedBy = isApproved ? countingApprovals(proposal, at.policy) : [];
  const why = command.isOverruled === true ? command.reason : evictedBy(by, approvedBy, command.reason);
  const decision = ending(leases, command.reason, at, { why, isOverruled: command.isOverruled === true });
  if (proposal === null || name === null || live.length === 0 || decision.event === null) return decision;
  const approval: Approval = {
    proposalId: proposal.id,
    proposedBy: proposal.proposedBy,
    approvedBy,
  };
  // Used up: it cannot end a second one.
  return { ...decision, event: { ...decision.event, approval }, facts: new Map([[name, null]]) };
}

/** Logs the end of what is no longer valid, a thousand at a time. Nothing depends on it. */
export function decideGc(view: View, at: Circumstances): Decision {
  const lapsed: Lease[] = [];
  for (const lease of view.leases.values()) {
    if (standingOf(lease, at) !== "valid") lapsed.push(lease);
    if (lapsed.length === LIMITS.keysPerOperation) break;
  }
  return ending(lapsed, null, at, { why: null, isOverruled: false });
}

/** `why` is for former holders: not for those whose time was up by then, unless the decision was not made here. */
function ending(
  leases: readonly Lease[],
  reason: string | null,
  at: Circumstances,
  { why, isOverruled }: { readonly why: string | null; readonly isOverruled: boolean },
): Decision {
  if (leases.length === 0) return { event: null, leases };
  const ended: Ended[] = leases.map((lease) => {
    const state = standingOf(lease, at);
    const record = endedRecord(lease, state === "valid" ? "forced" : state);
    return why !== null && (isOverruled || state === "valid") ? { ...record, why } : record;
  });
  const event: ClaimEvent = { type: "claim.evicted", leases: [], ended, reason };
  return { event: isOverruled ? { ...event, isOverruled } : event, leases };
}

/**
 * Which of the leases on a key somebody wants gone: another's before the caller's own, and the one in the
 * caller's way before those in other worktrees. Between several of those nobody guesses.
 */
export function meantByOnlooker(
  candidates: readonly Lease[],
  actor: Actor,
  at: Circumstances,
): Lease | Refusal | undefined {
  const foreign = candidates.filter((lease) => !sameParty(lease, actor));
  const here = foreign.filter(
    (lease) => lease.reach === "repository" || lease.worktreeId === actor.worktreeId,
  );
  if (here.length === 0 && foreign.length > 1) return ambiguous(foreign);
  return nearest(here.length > 0 ? here : foreign.length > 0 ? foreign : candidates, at, () => 0);
}

function ambiguous(leases: readonly Lease[]): Refusal {
  const sorted = [...leases].sort((a, b) => a.fencingToken - b.fencingToken).slice(0, 20);
  return refuse(
    "E_USAGE",
    `${printable(sorted[0]!.key)} is leased in ${leases.length} worktrees, and not in this one`,
    {
      hint: `name one by its id: ${sorted.map((lease) => `${lease.leaseId} (${lease.agentId})`).join(", ")}`,
      data: { holders: sorted.map(leaseSummary) },
    },
  );
}
