import { CotenantError, errorFrom, notFoundError, policyError } from "../errors/cotenant-error";
import type { LeaseRef } from "../kernel/commands";
import type { Fact, FactName, FactRecord } from "../kernel/facts";
import { type AgentId, printable, type Ulid } from "../kernel/ids";
import type { Lease } from "../kernel/lease";
import { mayEvict, type Policy } from "../kernel/policy";
import { andMore } from "../kernel/printing";
import {
  countingApprovals,
  isOutdated,
  isSamePerson,
  missingApprovals,
  PROPOSAL,
  PROPOSAL_SECS,
  type Proposal,
  proposalFrom,
  proposalName,
  proposalToFact,
  type Subject,
  subjectFromWire,
  subjectToWire,
} from "../kernel/proposals";
import { instantOf, type Now } from "../kernel/time";
import { endingCommand, notAllowedToEvict } from "../kernel/words";
import { newUlid } from "../platform/new-ulid";
import type { Change } from "./contract";
import type { LocalCoordinator } from "./local";
import type { Session } from "./session";

/** Who asks, and what this clone allows. */
export interface Evicting {
  readonly session: Session;
  readonly coordinator: LocalCoordinator;
}

/**
 * Ends leases, whosever they are. Where others have to agree first, it proposes that instead and throws
 * `E_APPROVAL_NEEDED` with the proposals: nothing has ended then.
 */
export async function forceEvict(
  evicting: Evicting,
  refs: readonly LeaseRef[],
  options: { readonly reason: string; readonly requestId?: Ulid | null },
): Promise<Change> {
  const { session } = evicting;
  try {
    return await session.evict(refs, options);
  } catch (error) {
    if (!(error instanceof CotenantError) || error.code !== "E_APPROVAL_NEEDED") throw error;
    const subjects = (error.data.leases ?? []).map(subjectFromWire);
    const proposals = await propose(
      evicting,
      subjects.filter((subject) => subject !== null),
      options.reason,
    );
    const { policy } = evicting.coordinator;
    const [only] = proposals;
    // Everybody had agreed, and whoever was to end it died before that.
    if (proposals.length === 1 && missingApprovals(only!, policy) === 0) return carryOut(session, only!);
    throw proposed(error, proposals, policy);
  }
}

/** One for each lease; the one that is open already where there is one. */
async function propose(
  { session, coordinator }: Evicting,
  subjects: readonly Subject[],
  reason: string,
): Promise<Proposal[]> {
  const { clock, random } = coordinator.store.platform;
  let proposals: Proposal[] = [];
  await session.write([], {
    about: aboutOf(subjects),
    facts: [],
    factKinds: [PROPOSAL],
    isOnlyLogged: true,
    body: async ({ facts, now }) => {
      const known = openAmong(facts, now);
      const fresh: Proposal[] = [];
      proposals = subjects.map((subject) => {
        const before = known.find(({ subject: { leaseId } }) => leaseId === subject.leaseId);
        if (before !== undefined) return before;
        const id = newUlid({ clock, random });
        const proposedBy = session.actor.agentId;
        fresh.push({ id, subject, proposedBy, proposedAt: instantOf(now), reason, approvedBy: [] });
        return fresh.at(-1)!;
      });
      if (fresh.length === 0) return null;
      return {
        type: "eviction.proposed",
        payload: { reason, proposals: fresh.map(namedIn) },
        facts: new Map([...outdatedIn(facts, now), ...fresh.map(asFact)]),
        answer: true,
      };
    },
  });
  return proposals;
}

export interface Approved {
  readonly proposal: Proposal;
  /** How many others still have to agree. */
  readonly missing: number;
  /** What the last needed approval has ended; null before that. */
  readonly change: Change | null;
  /** Whether the caller had agreed before. */
  readonly wasAgreed: boolean;
}

/** Agrees to an eviction; the last one that is needed carries it out, for the proposal's own reason. */
export async function approveEviction(evicting: Evicting, id: Ulid): Promise<Approved> {
  const { session, coordinator } = evicting;
  const { policy } = coordinator;
  const { agentId } = session.actor;
  if (!mayEvict(agentId, policy)) throw errorFrom(notAllowedToEvict(agentId, policy));
  const open = (await openProposals(coordinator)).find((proposal) => proposal.id === id);
  if (open === undefined) throw noOpenProposal(id);
  if (isSamePerson(agentId, open.proposedBy)) throw needsAnother(open, agentId, policy);
  const { proposal, wasAgreed } = await agree(evicting, id);
  const missing = missingApprovals(proposal, policy);
  if (missing > 0) return { proposal, missing, change: null, wasAgreed };
  try {
    return { proposal, missing, change: await carryOut(session, proposal), wasAgreed };
  } catch (error) {
    // Somebody else who agreed at the same time was faster, or the lease has ended by itself.
    throw error instanceof CotenantError && OVER.includes(error.code) ? noOpenProposal(id) : error;
  }
}

const OVER: readonly string[] = ["E_NOT_FOUND", "E_FENCING_MISMATCH", "E_LOCK_EXPIRED", "E_APPROVAL_NEEDED"];

function carryOut(session: Session, { id, subject, reason }: Proposal): Promise<Change> {
  const { key, leaseId } = subject;
  return session.evict([{ key, leaseId }], { reason, proposalId: id });
}

async function agree(
  { session, coordinator }: Evicting,
  id: Ulid,
): Promise<{ proposal: Proposal; wasAgreed: boolean }> {
  const { agentId } = session.actor;
  const name = proposalName(id);
  let proposal: Proposal | null = null;
  let wasAgreed = false;
  await session.write([], {
    about: `eviction ${id}`,
    facts: [name],
    isOnlyLogged: true,
    body: async ({ facts, now }) => {
      const before = proposalFrom(facts.get(name)?.value);
      if (before === null || isOutdated(before, now)) throw noOpenProposal(id);
      proposal = before;
      wasAgreed = before.approvedBy.some((other) => isSamePerson(other, agentId));
      if (wasAgreed) return null;
      proposal = { ...before, approvedBy: [...before.approvedBy, agentId] };
      const { subject, proposedBy, reason, approvedBy } = proposal;
      return {
        type: "eviction.approved",
        payload: {
          proposal_id: id,
          ...subjectToWire(subject),
          proposed_by: proposedBy,
          approved_by: approvedBy,
          missing: missingApprovals(proposal, coordinator.policy),
          reason,
        },
        facts: new Map([asFact(proposal)]),
        answer: true,
      };
    },
  });
  return { proposal: proposal!, wasAgreed };
}

/** What can still be agreed to: not too old, and about a lease that is still the same one. */
export async function openProposals(coordinator: LocalCoordinator): Promise<Proposal[]> {
  const facts = await coordinator.facts({ kinds: [PROPOSAL] });
  const open = openAmong(facts, coordinator.store.now());
  const here = open.filter(({ subject }) => subject.host === null);
  if (here.length === 0) return open;
  const standing = await coordinator.find(here.map(({ subject: { key, leaseId } }) => ({ key, leaseId })));
  const isSame = ({ leaseId, fencingToken }: Subject) =>
    standing.some(
      (status) =>
        status.standing === "valid" &&
        status.lease.leaseId === leaseId &&
        status.lease.fencingToken === fencingToken,
    );
  return open.filter(({ subject }) => subject.host !== null || isSame(subject));
}

/** The one that somebody means by its own id, or by that of the lease or what it is on. */
export async function meantProposal(
  coordinator: LocalCoordinator,
  id: Ulid | null,
  ref: LeaseRef,
): Promise<Ulid> {
  const open = await openProposals(coordinator);
  const isMeant = ({ subject: { key, leaseId } }: Proposal) =>
    ref.leaseId === null ? key === ref.key : leaseId === ref.leaseId;
  const meant = open.find((proposal) => proposal.id === id) ?? open.find(isMeant);
  if (meant !== undefined) return meant.id;
  const [status] = await coordinator.find([ref]);
  throw status?.standing === "valid" ? nothingProposed(status.lease) : noOpenProposal(id ?? ref.key ?? "");
}

/** Nothing depends on it: what is outdated counts for nothing. */
export async function forgetProposals(session: Session, coordinator: LocalCoordinator): Promise<void> {
  const open = await openProposals(coordinator);
  const facts = await coordinator.facts({ kinds: [PROPOSAL] });
  const names = [...facts.keys()].filter((name) => !open.some(({ id }) => proposalName(id) === name));
  if (names.length === 0) return;
  await session.write([], {
    about: "evictions",
    facts: names,
    isOnlyLogged: true,
    body: async ({ facts: known }) => {
      const gone = names.filter((name) => known.has(name));
      if (gone.length === 0) return null;
      return {
        type: "eviction.void",
        payload: { proposal_ids: gone.map((name) => proposalFrom(known.get(name)?.value)?.id ?? null) },
        facts: new Map(gone.map((name) => [name, null])),
        answer: true,
      };
    },
  });
}

function openAmong(facts: ReadonlyMap<FactName, FactRecord>, now: Now): Proposal[] {
  return [...facts.values()]
    .map(({ value }) => proposalFrom(value))
    .filter((proposal) => proposal !== null)
    .filter((proposal) => !isOutdated(proposal, now))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

function outdatedIn(facts: ReadonlyMap<FactName, FactRecord>, now: Now): [FactName, null][] {
  const open = new Set(openAmong(facts, now).map(({ id }) => proposalName(id)));
  return [...facts.keys()].filter((name) => !open.has(name)).map((name) => [name, null]);
}

function asFact(proposal: Proposal): [FactName, Fact] {
  return [proposalName(proposal.id), proposalToFact(proposal)];
}

function namedIn({ id, subject }: Proposal): Record<string, unknown> {
  return { proposal_id: id, ...subjectToWire(subject) };
}

function aboutOf(subjects: readonly Subject[]): string {
  const more = andMore(subjects.length - 1);
  return `eviction of ${subjects[0]?.agentId ?? "nobody"}${more}`;
}

// --- words ------------------------------------------------------------------------------------------------

/** How a proposal stands, for people and programs. */
export function proposalJson(proposal: Proposal, policy: Policy): Record<string, unknown> {
  const { id, subject, proposedBy, proposedAt, reason } = proposal;
  return {
    proposal_id: id,
    ...subjectToWire(subject),
    proposed_by: proposedBy,
    proposed_at: new Date(proposedAt.wallMs).toISOString(),
    expires_at: new Date(proposedAt.wallMs + PROPOSAL_SECS * 1000).toISOString(),
    reason,
    approved_by: countingApprovals(proposal, policy),
    missing: missingApprovals(proposal, policy),
  };
}

export function approveCommand({ id }: Pick<Proposal, "id">): string {
  return `cotenant claim approve ${id}`;
}

export function proposalText({ subject, proposedBy, reason }: Proposal): string {
  const { agentId, key, host } = subject;
  const where = host === null ? "" : ` on ${printable(host, 60)}`;
  return `${proposedBy} proposes to end the lease of ${agentId}${where} on ${printable(key)}: ${printable(reason, 300)}`;
}

function proposed(refusal: CotenantError, proposals: readonly Proposal[], policy: Policy): CotenantError {
  const [first] = proposals;
  if (first === undefined) return refusal;
  return new CotenantError(
    "E_APPROVAL_NEEDED",
    `nothing has ended yet: ${proposalText(first)}; ${standingText(first, policy)}`,
    {
      hint: `within the hour, somebody else whom policy.evict allows runs: ${approveCommand(first)}`,
      data: {
        ...refusal.data,
        proposal_id: first.id,
        proposals: proposals.map((proposal) => proposalJson(proposal, policy)),
      },
      cause: refusal,
    },
  );
}

/** Who has agreed to it, and what is missing. */
export function standingText(proposal: Proposal, policy: Policy): string {
  const agreed = countingApprovals(proposal, policy);
  const words = missingText(missingApprovals(proposal, policy));
  return agreed.length === 0 ? words : `approved by ${agreed.join(", ")}, ${words}`;
}

export function missingText(missing: number): string {
  return `needs ${missing === 1 ? "one more approval" : `${missing} more approvals`}`;
}

/** For whoever wants such a lease in another way: it is proposed already, and that can be agreed to. */
export async function namingProposal(
  error: unknown,
  coordinator: LocalCoordinator,
  asker: AgentId,
): Promise<unknown> {
  if (!(error instanceof CotenantError) || error.code !== "E_APPROVAL_NEEDED") return error;
  if (error.data["proposal_id"] !== undefined) return error;
  const wanted = (error.data.leases ?? []).map(subjectFromWire);
  const known = (await openProposals(coordinator)).find(({ subject }) =>
    wanted.some((other) => other?.leaseId === subject.leaseId),
  );
  if (known === undefined) return error;
  const who = isSamePerson(asker, known.proposedBy)
    ? `you have proposed to end it already; somebody else whom policy.evict allows runs: ${approveCommand(known)}`
    : `${known.proposedBy} has proposed to end it; if you agree: ${approveCommand(known)}`;
  return error.with({ hint: who });
}

function nothingProposed(lease: Pick<Lease, "key" | "leaseId" | "agentId">): CotenantError {
  const way = endingCommand(lease);
  return notFoundError(
    `nobody has proposed to end the lease of ${lease.agentId} on ${printable(lease.key)}`,
    way === null ? "'cotenant claim proposals' shows what is open" : `to propose it: ${way}`,
    { lease_id: lease.leaseId, key: lease.key },
  );
}

export function noOpenProposal(id: string): CotenantError {
  return new CotenantError("E_NOT_FOUND", `there is no open proposal ${printable(id)}`, {
    hint: "it was carried out, is older than an hour, or its lease has ended or changed hands; 'cotenant claim proposals' shows what is open",
    data: { proposal_id: id },
  });
}

function needsAnother({ id, proposedBy }: Proposal, agentId: AgentId, policy: Policy): CotenantError {
  return policyError(
    `${agentId} cannot agree to what ${proposedBy} proposes: it takes somebody else`,
    `another one of ${policy.evict.join(", ")} runs: ${approveCommand({ id })}`,
    { proposal_id: id, proposed_by: proposedBy, agent_id: agentId, setting: "policy.approvers" },
  );
}
