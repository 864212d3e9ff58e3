import type { AgentId, FencingToken, LeaseId, SessionId, WorktreeId } from "./ids";
import { trusted } from "./ids";
import { isPathKey, type LeaseKey } from "./keys";
import type { Instant } from "./time";

/** The process a lease is bound to, told apart from every other one on any machine at any time. */
export interface Holder {
  readonly machineId: string;
  readonly bootId: string;
  readonly pidNamespace: string;
  readonly timeNamespace: string;
  readonly user: string;
  readonly pid: number;
  /** In the platform's own unit; only ever compared for equality. Empty when it could not be read. */
  readonly startTime: string;
}

/** `repository`: excludes everybody. `worktree`: excludes others in the same worktree only (the guard). */
export type Reach = "repository" | "worktree";
/** `ttl` outlives its process; `process` lives and dies with it. */
export type Bind = "ttl" | "process";

export interface StoleFrom {
  readonly leaseId: LeaseId;
  readonly agentId: AgentId;
  readonly why: EndCause;
}

export interface Lease {
  readonly leaseId: LeaseId;
  readonly key: LeaseKey;
  readonly agentId: AgentId;
  readonly sessionId: SessionId;
  readonly worktreeId: WorktreeId;
  readonly branch: string | null;
  readonly holder: Holder;
  readonly ttlSecs: number;
  readonly acquiredAt: Instant;
  readonly renewedAt: Instant;
  /** Null for an indefinite and for a process-bound lease. */
  readonly expiresAt: Instant | null;
  readonly lastBeat: Instant;
  readonly maxTotalSecs: number | null;
  readonly fencingToken: FencingToken;
  /** Null after a transfer, until the new holder's first call adopts the lease. */
  readonly secretHash: string | null;
  readonly reason: string | null;
  readonly note: string | null;
  readonly stopIdleAt: Instant | null;
  readonly bind: Bind;
  readonly reach: Reach;
  readonly stoleFrom: readonly StoleFrom[];
}

/** Why a lease ended without its holder's release. */
export type EndCause = "expired" | "dead" | "stop_idle" | "forced";

/** A lease that is no more: how it ended decides what its former holder is told. */
export interface Ended {
  readonly leaseId: LeaseId;
  readonly key: LeaseKey;
  readonly reach: Reach;
  readonly worktreeId: WorktreeId;
  readonly agentId: AgentId;
  readonly fencingToken: FencingToken;
  readonly how: "released" | "transferred" | EndCause;
  /** The lease that took its place in the same operation. */
  readonly successor: LeaseId | null;
  /** In words, for its former holder, where somebody else ended it: what the ledger says, or who ended, took or gave it, and why. */
  readonly why?: string;
  /** To whom its holder handed it over. */
  readonly toAgent?: AgentId;
}

/** Where a lease lives: its key, and for worktree reach also the worktree. At most one lease per slot. */
export type Slot = string & { readonly slot: unique symbol };

export function slotOf(at: Pick<Lease, "key" | "reach" | "worktreeId">): Slot {
  return (at.reach === "worktree" ? `${at.key}\n${at.worktreeId}` : at.key) as Slot;
}

/** What {@link slotOf} put together. */
export function slotParts(slot: Slot): { readonly key: LeaseKey; readonly worktreeId: WorktreeId | null } {
  const [key = "", worktreeId = null] = slot.split("\n");
  return { key: trusted(key), worktreeId: trusted(worktreeId) };
}

export function isIndefinite(lease: Lease): boolean {
  return lease.bind === "ttl" && lease.expiresAt === null;
}

/** Reach means something for paths only; everything else is one thing in the whole repository. */
export function effectiveReach(key: LeaseKey, reach: Reach): Reach {
  return isPathKey(key) ? reach : "repository";
}

export interface Party {
  readonly agentId: AgentId;
  readonly sessionId: SessionId;
  readonly worktreeId: WorktreeId;
}

/** One agent, session and worktree is one holder: its leases never exclude each other. */
export function sameParty(a: Party, b: Party): boolean {
  return a.agentId === b.agentId && a.sessionId === b.sessionId && a.worktreeId === b.worktreeId;
}

/** PROTOCOL 16: a transferred lease has no secret until its new agent calls from its new worktree. */
export function awaitsAdoption(lease: Lease, party: Party): boolean {
  return (
    lease.secretHash === null && lease.agentId === party.agentId && lease.worktreeId === party.worktreeId
  );
}

/** Held by the party, or handed to it and not yet adopted: either way not in its way. */
export function belongsTo(lease: Lease, party: Party): boolean {
  return sameParty(lease, party) || awaitsAdoption(lease, party);
}

/** As far as can be told: a start time that could not be read tells nothing. */
export function sameProcess(a: Holder, b: Holder): boolean {
  return (
    a.machineId === b.machineId &&
    a.bootId === b.bootId &&
    a.pidNamespace === b.pidNamespace &&
    a.pid === b.pid &&
    (a.startTime === b.startTime || a.startTime === "" || b.startTime === "")
  );
}

export function endedRecord(lease: Lease, how: Ended["how"], successor: LeaseId | null = null): Ended {
  return {
    leaseId: lease.leaseId,
    key: lease.key,
    reach: lease.reach,
    worktreeId: lease.worktreeId,
    agentId: lease.agentId,
    fencingToken: lease.fencingToken,
    how,
    successor,
  };
}
