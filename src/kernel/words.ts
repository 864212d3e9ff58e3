import { type AgentId, type LeaseId, printable } from "./ids";
import type { Lease } from "./lease";
import type { Policy } from "./policy";
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
    worktree_id: lease.worktreeId,
    expires_at: lease.expiresAt === null ? null : new Date(lease.expiresAt.wallMs).toISOString(),
    reason: lease.reason,
  };
}

export function nameOfHolder(lease: Lease): string {
  return `${lease.agentId} (${lease.worktreeId})`;
}

function describeExpiry(lease: Lease, now: Now): string {
  const process = lease.bind === "process" ? "until its process ends" : null;
  if (lease.expiresAt === null) return process ?? "without expiry";
  const left = Math.max(0, Math.ceil(timeLeftMs(lease, now) / 1000));
  return `${process === null ? "" : `${process}, at most `}until ${new Date(lease.expiresAt.wallMs).toISOString()} (${left} s left)`;
}

export function heldBy(blockers: readonly Lease[], now: Now, hint?: string): Refusal {
  const first = blockers[0]!;
  const others = blockers.length > 1 ? ` and ${blockers.length - 1} more` : "";
  return refuse(
    "E_LOCK_CONFLICT",
    `${printable(first.key)} is held by ${nameOfHolder(first)}${others}, ${describeExpiry(first, now)}`,
    {
      ...(hint === undefined ? {} : { hint }),
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

export function needsReason(what: string): Refusal {
  return refuse("E_USAGE", `${what} needs a reason`, { hint: 'add --reason "…"; it is logged' });
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
  return refuse("E_FENCING_MISMATCH", `that lease on ${printable(key)} is no more: ${ENDS[end]}`, {
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
