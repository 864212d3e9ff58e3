import { type Fact, type FactName, factName } from "./facts";
import type { AgentId, FencingToken, LeaseId, Ulid } from "./ids";
import { fencingToken as tokenOf, trusted } from "./ids";
import type { LeaseKey } from "./keys";
import type { Lease } from "./lease";
import { mayEvict, type Policy } from "./policy";
import { elapsedMs, type Instant, type Now } from "./time";

/** Facts about evictions that were proposed where others have to agree (`policy.approvers`). */
export const PROPOSAL = "eviction";
/** Whoever has not found enough others by then proposes anew. */
export const PROPOSAL_SECS = 3_600;

/** A live lease that somebody wants gone, by its id and token: another one on the same key is not meant. */
export interface Subject {
  readonly leaseId: LeaseId;
  readonly key: LeaseKey;
  readonly fencingToken: FencingToken;
  readonly agentId: AgentId;
  /** The other machine's name, for a claim that is only known from the ledger. */
  readonly host: string | null;
}

export interface Proposal {
  readonly id: Ulid;
  readonly subject: Subject;
  readonly proposedBy: AgentId;
  readonly proposedAt: Instant;
  readonly reason: string;
  /** In the order in which they agreed. */
  readonly approvedBy: readonly AgentId[];
}

export function proposalName(id: Ulid): FactName {
  // In small letters: it becomes a file's name, also where file systems fold case.
  return factName(PROPOSAL, id.toLowerCase());
}

export function subjectOf({ leaseId, key, fencingToken, agentId }: Lease): Subject {
  return { leaseId, key, fencingToken, agentId, host: null };
}

/** As far as names tell: `human:ada` and `admin:ada` are one, whatever their sessions. */
export function isSamePerson(a: AgentId, b: AgentId): boolean {
  const name = (id: AgentId) => id.slice(id.indexOf(":") + 1).toLowerCase();
  return name(a) === name(b);
}

/** Who counts: others than the proposer, each person once, and only those who may evict by now. */
export function countingApprovals({ proposedBy, approvedBy }: Proposal, policy: Policy): AgentId[] {
  const counting: AgentId[] = [];
  for (const agentId of approvedBy) {
    const isKnown = [proposedBy, ...counting].some((other) => isSamePerson(other, agentId));
    if (!isKnown && mayEvict(agentId, policy)) counting.push(agentId);
  }
  return counting;
}

export function missingApprovals(proposal: Proposal, policy: Policy): number {
  return Math.max(0, policy.approvers - countingApprovals(proposal, policy).length);
}

export function isOutdated({ proposedAt }: Proposal, now: Now): boolean {
  return elapsedMs(proposedAt, now) >= PROPOSAL_SECS * 1000;
}

/** Whether this may be ended on the strength of the proposal. */
export function isAgreed(
  proposal: Proposal | null,
  subject: Pick<Subject, "leaseId" | "fencingToken">,
  now: Now,
  policy: Policy,
): proposal is Proposal {
  return (
    proposal !== null &&
    proposal.subject.leaseId === subject.leaseId &&
    proposal.subject.fencingToken === subject.fencingToken &&
    !isOutdated(proposal, now) &&
    mayEvict(proposal.proposedBy, policy) &&
    missingApprovals(proposal, policy) === 0
  );
}

// --- as a fact --------------------------------------------------------------------------------------------

export function proposalToFact({ id, subject, proposedBy, proposedAt, reason, approvedBy }: Proposal): Fact {
  return {
    proposal_id: id,
    ...subjectToWire(subject),
    proposed_by: proposedBy,
    proposed_at: proposedAt,
    reason,
    approved_by: approvedBy,
  };
}

export function subjectToWire({ leaseId, key, fencingToken, agentId, host }: Subject) {
  return { lease_id: leaseId, key, fencing_token: fencingToken, agent_id: agentId, host };
}

export function subjectFromWire(wire: Fact): Subject | null {
  const { lease_id: leaseId, key, fencing_token: fencingToken, agent_id: agentId, host } = wire;
  const isWhole = [leaseId, key, agentId].every((text) => typeof text === "string");
  if (!isWhole || typeof fencingToken !== "number") return null;
  return {
    leaseId: trusted(leaseId as string),
    key: trusted(key as string),
    fencingToken: tokenOf(fencingToken),
    agentId: trusted(agentId as string),
    host: typeof host === "string" ? host : null,
  };
}

/** Null for what cannot be understood: nothing is ended on the strength of that. */
export function proposalFrom(fact: Fact | undefined): Proposal | null {
  const subject = fact === undefined ? null : subjectFromWire(fact);
  if (fact === undefined || subject === null) return null;
  const { proposal_id: id, proposed_by: proposedBy, reason, approved_by: approvedBy } = fact;
  const at = fact["proposed_at"] as Partial<Instant> | null | undefined;
  const isWhole =
    [id, proposedBy, reason, at?.clockId].every((text) => typeof text === "string") &&
    typeof at?.wallMs === "number" &&
    typeof at.monotonicMs === "number" &&
    Array.isArray(approvedBy) &&
    approvedBy.every((agentId) => typeof agentId === "string");
  if (!isWhole) return null;
  return {
    id: trusted(id as string),
    subject,
    proposedBy: trusted(proposedBy as string),
    proposedAt: at as Instant,
    reason: reason as string,
    approvedBy: approvedBy.map((agentId) => trusted(agentId)),
  };
}
