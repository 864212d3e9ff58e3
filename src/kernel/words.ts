import { type AgentId, type LeaseId, printable } from "./ids";
import { kindOf, type LeaseKey, nameOf } from "./keys";
import type { Lease, Party } from "./lease";
import type { Policy } from "./policy";
import { andMore } from "./printing";
import { type Subject, subjectToWire } from "./proposals";
import { type Refusal, refuse } from "./refusal";
import type { Ticket } from "./tickets";
import type { Now } from "./time";
import { timeLeftMs } from "./validity";

/** How many holders or waiters a refusal lists. */
const LISTED = 20;

/** What an onlooker may know of a lease. */
export function leaseSummary(lease: Lease): Record<string, unknown> {
  return {
    lease_id: lease.leaseId,
    key: lease.key,
    agent_id: lease.agentId,
    session_id: lease.sessionId,
    worktree_id: lease.worktreeId,
    expires_at: lease.expiresAt === null ? null : new Date(lease.expiresAt.wallMs).toISOString(),
    reason: lease.reason,
  };
}

/** For an asker of the same name, what tells the two apart. */
export function nameOfHolder(lease: Lease, asker?: Party): string {
  const { agentId, worktreeId } = lease;
  return asker !== undefined && isOtherSession(lease, asker)
    ? `another session of ${agentId}, ${sessionWord(lease)} (${worktreeId})`
    : `${agentId} (${worktreeId})`;
}

export function isOtherSession(lease: Lease, { agentId, sessionId }: Party): boolean {
  return lease.agentId === agentId && lease.sessionId !== sessionId;
}

/** As it is typed after `--session`. */
export function sessionWord({ sessionId }: Lease): string {
  return printable(sessionId, 100);
}

function describeExpiry(lease: Lease, now: Now): string {
  const process = lease.bind === "process" ? "until its process ends" : null;
  if (lease.expiresAt === null) return process ?? "without expiry";
  const left = Math.max(0, Math.ceil(timeLeftMs(lease, now) / 1000));
  return `${process === null ? "" : `${process}, at most `}until ${new Date(lease.expiresAt.wallMs).toISOString()} (${left} s left)`;
}

/** The same agent and session, in another worktree: another holder, and yet nobody else. */
export function isOwnElsewhere(lease: Lease, party: Party): boolean {
  const { agentId, sessionId, worktreeId } = party;
  return lease.agentId === agentId && lease.sessionId === sessionId && lease.worktreeId !== worktreeId;
}

/** By its id a session's lease is meant from wherever it is named. */
export function ownElsewhereHint({ key, leaseId, agentId }: Lease): string {
  return kindOf(key) === "issue"
    ? `go on there, or bring it here: cotenant claim transfer ${leaseId} --to-agent ${agentId} --reason "go on here"`
    : `go on there, or give it back: cotenant lock release ${leaseId}`;
}

/** With which a person ends somebody's lease; null for a writer lock, which nobody can take away. */
export function endingCommand({ key, leaseId }: Pick<Lease, "key" | "leaseId">): string | null {
  const kind = kindOf(key);
  return kind === "worktree"
    ? null
    : `cotenant claim force-evict ${kind === "issue" ? nameOf(key) : leaseId} --reason <why>`;
}

/** With which somebody takes what is free; null for what has no name that can be typed anywhere. */
export function takingCommand(key: LeaseKey): string | null {
  return kindOf(key) === "issue" ? `cotenant claim acquire ${nameOf(key)}` : null;
}

export function heldBy(blockers: readonly Lease[], now: Now, hint?: string, asker?: Party): Refusal {
  const first = blockers[0]!;
  const others = andMore(blockers.length - 1);
  const isOwn = asker !== undefined && isOwnElsewhere(first, asker);
  const who = isOwn ? `you from ${first.worktreeId}` : nameOfHolder(first, asker);
  const next = hint ?? (isOwn ? ownElsewhereHint(first) : undefined);
  return refuse(
    "E_LOCK_CONFLICT",
    `${printable(first.key)} is held by ${who}${others}, ${describeExpiry(first, now)}`,
    {
      ...(next === undefined ? {} : { hint: next }),
      data: { holders: blockers.slice(0, LISTED).map(leaseSummary) },
    },
  );
}

export function queued(ahead: readonly Ticket[]): Refusal {
  return refuse("E_QUEUED", `${ahead[0]!.agentId} waits for it already (${ahead.length} ahead of you)`, {
    data: { ahead: ahead.length, waiting: ahead.slice(0, LISTED).map((t) => t.agentId) },
  });
}

export function notAllowedToEvict(agentId: AgentId, policy: Policy): Refusal {
  return refuse("E_POLICY", `${agentId} may not end somebody else's live lease`, {
    hint: `only ${policy.evict.join(", ") || "nobody"} may (policy.evict); wait until it is free, or ask the holder`,
    data: { agent_id: agentId, allowed: policy.evict, setting: "policy.evict" },
  });
}

/** Nothing has ended yet. `leases` is what a proposal has to name. */
export function needsApproval(subjects: readonly Subject[], { approvers }: Policy): Refusal {
  const [first] = subjects;
  const more = andMore(subjects.length - 1);
  const whose = `the live lease of ${first!.agentId} on ${printable(first!.key)}${more}`;
  const others = approvers === 1 ? "another person" : `${approvers} other people`;
  const way = endingCommand(first!);
  return refuse("E_APPROVAL_NEEDED", `ending ${whose} needs the approval of ${others}`, {
    ...(way === null ? {} : { hint: `propose it: ${way}` }),
    data: {
      leases: subjects.slice(0, LISTED).map(subjectToWire),
      approvers,
      setting: "policy.approvers",
    },
  });
}

export function needsReason(what: string): Refusal {
  return refuse("E_USAGE", `${what} needs a reason`, { hint: "add --reason <why>; it is logged" });
}

export function expired(key: Lease["key"], leaseId: LeaseId): Refusal {
  return refuse("E_LOCK_EXPIRED", `the lease on ${printable(key)} has expired`, {
    data: { lease_id: leaseId, key },
  });
}

const ENDS = {
  handed_over: "it was handed over",
  taken_over: "it was taken over",
  evicted: "it was evicted",
  dead: "its process has died",
} as const;

export function mismatch(key: Lease["key"], leaseId: LeaseId, end: keyof typeof ENDS): Refusal {
  return noMore(key, leaseId, end, ENDS[end]);
}

const EVICTED = "evicted by ";
const TAKEN_OVER = "taken over by ";

/** For the former holder of a lease that somebody ended. */
export function evictedBy(by: AgentId, approvedBy: readonly AgentId[], reason: string): string {
  return `${EVICTED}${by}${approvedBy.length === 0 ? "" : `, approved by ${approvedBy.join(", ")}`}: ${reason}`;
}

/** For the former holder of a lease that somebody took for themselves. */
export function takenOverBy(by: AgentId, reason: string | null): string {
  return `${TAKEN_OVER}${by}${reason === null ? "" : `: ${reason}`}`;
}

/** Its former holder is told why, as it was said when it ended. Where nobody of this clone ended it, that is anything. */
export function takenAway(key: Lease["key"], leaseId: LeaseId, why: string): Refusal {
  const end = why.startsWith(EVICTED) ? "evicted" : why.startsWith(TAKEN_OVER) ? "taken_over" : "overruled";
  return noMore(key, leaseId, end, printable(why, 300));
}

/** To somebody else, by its holder or by somebody who may end it. */
export function handedOver(key: Lease["key"], leaseId: LeaseId, why: string): Refusal {
  return noMore(key, leaseId, "handed_over", printable(why, 300));
}

function noMore(key: Lease["key"], leaseId: LeaseId, end: string, why: string): Refusal {
  return refuse("E_FENCING_MISMATCH", `that lease on ${printable(key)} is no more: ${why}`, {
    data: { lease_id: leaseId, key, end },
  });
}

export function liveWriterLock(lease: Lease): Refusal {
  return refuse(
    "E_LOCK_CONFLICT",
    `the writer lock of ${nameOfHolder(lease)} is live, and nobody can take it away`,
    {
      hint:
        lease.expiresAt === null
          ? "ask its holder to release it"
          : "wait for it to expire, or ask its holder to release it",
      data: { holders: [leaseSummary(lease)] },
    },
  );
}
