import { type Circumstances, type Decision, isLiveWriterLock, standingOf } from "./circumstances";
import type { Transfer } from "./commands";
import { conflict } from "./conflicts";
import { meantByOnlooker } from "./evictions";
import { type EndCause, endedRecord, isIndefinite, type Lease, sameParty } from "./lease";
import {
  checkIndefinite,
  checkText,
  checkToken,
  isGiven,
  LIMITS,
  mayEvict,
  needsOthers,
  ttlCapSecs,
} from "./policy";
import { NamedLeases, provenAndValid } from "./proof";
import { subjectOf } from "./proposals";
import { isRefusal, type Refusal, type RefusalCode } from "./refusal";
import { instantOf, later } from "./time";
import { nextTokenAbove, type View } from "./view";
import { heldBy, liveWriterLock, needsApproval, needsReason, takingCommand } from "./words";

/**
 * The key goes to another holder in one event, so that there is no instant in which it is free. The new lease
 * is a grant like any other: nothing valid may conflict with it, and it ends what has lapsed in its place. Somebody else's
 * is handed over by whoever may end it.
 */
export function decideTransfer(view: View, command: Transfer, at: Circumstances): Decision | Refusal {
  const { reason } = command;
  if (!isGiven(reason)) return needsReason("a transfer");
  const unfit = checkText(reason, "reason") ?? checkToken(view.nextToken, command.aboveToken);
  if (unfit !== null) return unfit;
  const named = new NamedLeases(view, [command.lease]);
  const own = provenAndValid(view, named, command.lease, command, at);
  const lease = isRefusal(own) ? othersInstead(own, named, command, at) : own;
  if (isRefusal(lease)) return toBeTakenInstead(lease, view, named, command, at);
  const isForced = isRefusal(own);

  const others = [...view.leases.values()].filter((other) => other.leaseId !== lease.leaseId);
  const target = { key: lease.key, reach: lease.reach, worktreeId: command.toWorktree };
  const inTheWay: Lease[] = [];
  const lapsed: { lease: Lease; why: EndCause }[] = [];
  for (const other of others.filter((o) => conflict(target, o)).sort(byToken)) {
    const state = standingOf(other, at);
    if (state === "valid") inTheWay.push(other);
    else lapsed.push({ lease: other, why: state });
  }
  // Also the giver's own, which have not conflicted so far, and the taker's, whose session is not known yet.
  if (inTheWay.length > 0) return heldBy(inTheWay, at.now, "that one must be released first");
  if (isIndefinite(lease)) {
    const standing = others.filter((other) => isIndefinite(other) && standingOf(other, at) === "valid");
    const refused = checkIndefinite([lease.key], command.toAgent, reason, standing, at.policy);
    if (refused !== null) return refused;
  }

  const moved: Lease = {
    ...handedOver(lease, command, view, at),
    reason,
    stoleFrom: lapsed
      .slice(0, LIMITS.stoleFrom)
      .map(({ lease: { leaseId, agentId }, why }) => ({ leaseId, agentId, why })),
  };
  const ended = [
    {
      ...endedRecord(lease, "transferred", moved.leaseId),
      ...(isForced
        ? { why: `handed to ${command.toAgent} by ${command.actor.agentId}: ${reason}` }
        : { toAgent: command.toAgent }),
    },
    ...lapsed.map(({ lease: other, why }) => endedRecord(other, why, moved.leaseId)),
  ];
  return { event: { type: "claim.transferred", leases: [moved], ended, reason }, leases: [moved] };
}

/** The lease of somebody else that the caller may take away; else why its own could not be proved. */
function othersInstead(
  refusal: Refusal,
  named: NamedLeases,
  { lease: ref, actor }: Transfer,
  at: Circumstances,
): Lease | Refusal {
  if (refusal.code !== "E_LOCK_NOT_HELD" || !mayEvict(actor.agentId, at.policy)) return refusal;
  const lease = meantByOnlooker(named.of(ref), actor, at);
  if (lease === undefined || isRefusal(lease)) return lease ?? refusal;
  if (isLiveWriterLock(lease, at)) return liveWriterLock(lease);
  if (sameParty(lease, actor) || standingOf(lease, at) !== "valid") return refusal;
  return needsOthers(lease, actor, at.policy) ? needsApproval([subjectOf(lease)], at.policy) : lease;
}

const NOT_HELD: readonly RefusalCode[] = ["E_LOCK_NOT_HELD", "E_LOCK_EXPIRED", "E_NOT_FOUND"];

/** Where nobody holds it any more, there is nothing to hand over: whoever was to have it takes it. */
function toBeTakenInstead(
  refusal: Refusal,
  view: View,
  named: NamedLeases,
  { lease: ref, toAgent }: Transfer,
  at: Circumstances,
): Refusal {
  const key = ref.key ?? named.of(ref)[0]?.key ?? null;
  const taking = key === null ? null : takingCommand(key);
  if (taking === null || !NOT_HELD.includes(refusal.code)) return refusal;
  const isHeld = [...view.leases.values()].some(
    (lease) => lease.key === key && standingOf(lease, at) === "valid",
  );
  return isHeld ? refusal : { ...refusal, hint: `nobody holds it: ${toAgent} can take it with '${taking}'` };
}

/** PROTOCOL 16: TTL-bound, for the new holder's process is not known yet, and without a secret. */
function handedOver(lease: Lease, command: Transfer, view: View, at: Circumstances): Lease {
  const now = instantOf(at.now);
  const ttlSecs = Math.min(
    lease.bind === "process" ? at.policy.defaultTtlSecs : lease.ttlSecs,
    ttlCapSecs(command.toAgent, at.policy),
  );
  const finite = !isIndefinite(lease);
  return {
    ...lease,
    leaseId: command.newLeaseId,
    agentId: command.toAgent,
    worktreeId: command.toWorktree,
    branch: command.toBranch,
    fencingToken: nextTokenAbove(view, command),
    secretHash: null,
    acquiredAt: now,
    renewedAt: now,
    lastBeat: now,
    ttlSecs,
    expiresAt: finite ? later(now, ttlSecs * 1000) : null,
    maxTotalSecs: finite ? Math.max(at.policy.maxTotalSecs, ttlSecs) : null,
    stopIdleAt: null,
    bind: "ttl",
  };
}

function byToken(a: Lease, b: Lease): number {
  return a.fencingToken - b.fencingToken;
}
