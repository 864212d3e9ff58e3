import type { AgentId, LeaseId, Ulid, WorktreeId } from "./ids";
import type { LeaseKey } from "./keys";
import type { Bind, Holder, Party, Reach, StoleFrom } from "./lease";

/** Who asks, from where, in which process. */
export interface Actor extends Party {
  readonly branch: string | null;
  readonly holder: Holder;
}

/** A lease as its holder or an onlooker names it: by key, by id, or by both. */
export interface LeaseRef {
  readonly key: LeaseKey | null;
  /** The lease the caller believes in; a different one at the key means that the caller's has ended. */
  readonly leaseId: LeaseId | null;
}

export function byKey(key: LeaseKey): LeaseRef {
  return { key, leaseId: null };
}

export interface Acquire {
  readonly kind: "acquire";
  readonly actor: Actor;
  readonly keys: readonly { readonly key: LeaseKey; readonly reach: Reach }[];
  readonly ttlSecs: number;
  readonly bind: Bind;
  /** Of a process-bound lease: it ends also this long after the last sign of life, so that a stopped process keeps nothing. */
  readonly atMostSecs?: number;
  readonly reason: string | null;
  readonly note: string | null;
  /** Hash of the one secret made for this operation. */
  readonly secretHash: string;
  /** Hashes of the secrets the caller can show for leases it holds already. */
  readonly proofs: readonly string[];
  /** As many fresh ids as there are keys. */
  readonly leaseIds: readonly LeaseId[];
  /** End live leases of others that stand in the way, where policy allows it. */
  readonly steal: boolean;
  /** The process that the session's leases are said to be held by has ended: they follow the session into the caller's. */
  readonly follows?: boolean;
  /** The caller's place in the queue, if it waits. */
  readonly ticket: number | null;
  /** PROTOCOL 23: the highest token of these keys that is known from elsewhere; a grant's is above it. */
  readonly aboveToken?: number;
  /** Leases of other machines whose place a grant takes: a steal like one within this repository. */
  readonly elsewhere?: readonly (StoleFrom & { readonly key: LeaseKey })[];
}

/** Of leases that their holder names, and proves to be its own. */
interface ByHolder {
  readonly actor: Actor;
  readonly leases: readonly LeaseRef[];
  readonly proofs: readonly string[];
  readonly secretHash: string;
}

export interface Renew extends ByHolder {
  readonly kind: "renew";
  readonly ttlSecs: number | null;
  readonly overrideMax: boolean;
  readonly reason: string | null;
}

export interface Heartbeat extends ByHolder {
  readonly kind: "heartbeat";
}

export interface Release extends ByHolder {
  readonly kind: "release";
  readonly reason: string | null;
}

export interface Transfer {
  readonly kind: "transfer";
  readonly actor: Actor;
  readonly lease: LeaseRef;
  readonly toAgent: AgentId;
  readonly toWorktree: WorktreeId;
  readonly toBranch: string | null;
  readonly reason: string | null;
  readonly newLeaseId: LeaseId;
  /** As with `Acquire`. */
  readonly aboveToken?: number;
  readonly proofs: readonly string[];
  readonly secretHash: string;
}

export interface Evict {
  readonly kind: "evict";
  readonly actor: Actor;
  readonly leases: readonly LeaseRef[];
  readonly reason: string | null;
  /** On the strength of which proposal, where `policy.approvers` asks for the approval of others. */
  readonly proposalId?: Ulid;
  /** Who holds it was decided elsewhere, by the ledger: there is nothing left for this repository's policy to allow. */
  readonly isOverruled?: boolean;
  /** With `isOverruled`: it was granted by the same operation, and nobody was told of it. It counts as given back. */
  readonly isTakenBack?: boolean;
}

/** Marks leases of a session that has stopped: they end by themselves unless the session comes back. */
export interface Stop {
  readonly kind: "stop";
  readonly actor: Actor;
  readonly leases: readonly LeaseRef[];
  readonly proofs: readonly string[];
}

/** Logs the end of whatever is no longer valid. Nothing depends on it. */
interface Gc {
  readonly kind: "gc";
  readonly actor: Actor;
}

/** What every sign of life of a session does for its leases: renew those below half, clear stop-idle. */
export interface Upkeep {
  readonly kind: "upkeep";
  readonly actor: Actor;
  readonly leases: readonly LeaseRef[];
  readonly proofs: readonly string[];
  /** With it, named leases that were handed to the caller are adopted (PROTOCOL 16). */
  readonly secretHash?: string;
}

/** Shows that the caller holds these, now, for a write that rests on them. */
export interface Prove extends ByHolder {
  readonly kind: "prove";
}

export type Command = Acquire | Renew | Heartbeat | Release | Transfer | Evict | Stop | Gc | Upkeep | Prove;
