import type { Acquire, Actor, Evict, LeaseRef, Release, Renew, Transfer } from "../kernel/commands";
import type { Extent } from "../kernel/conflicts";
import type { FactName, FactRecord } from "../kernel/facts";
import type { AgentId, LeaseId, Ulid } from "../kernel/ids";
import type { KeyKind, LeaseKey } from "../kernel/keys";
import type { Bind, Ended, Lease, Reach } from "../kernel/lease";
import type { Ticket } from "../kernel/tickets";
import type { Standing } from "../kernel/validity";
import type { LogActor } from "../store/envelope";
import type { Write, Written } from "../store/guarded-write";

/**
 * The contract that every engine keeps: local, daemon client, etcd. Secrets are made by callers; what comes
 * here is the hash of a new one, and the old ones themselves as proof. Refusals are thrown as CotenantError.
 */
export interface Coordinator {
  acquire(request: AcquireRequest): Promise<Grant>;
  /** The leases, when the actor holds every key already with more than half of its time left; else null. */
  held(request: HeldRequest): Promise<readonly Lease[] | null>;
  renew(request: RenewRequest): Promise<Change>;
  heartbeat(request: HolderRequest): Promise<Change>;
  release(request: ReleaseRequest): Promise<Change>;
  transfer(request: TransferRequest): Promise<Change>;
  evict(request: EvictRequest): Promise<Change>;
  stop(request: StopRequest): Promise<Change>;
  /** Renews what is below half of its time and clears stop-idle: what any sign of life of a session does. */
  upkeep(request: StopRequest): Promise<Change>;
  gc(request: GcRequest): Promise<Change>;
  /**
   * Proves the leases and lets `body` act on the strength of them, as one: what the write commits, it commits while
   * they are valid (promise 3).
   */
  write<T>(request: WriteRequest<T>): Promise<Written<T>>;
  /** What is remembered of things that are no leases. */
  facts(filter: FactFilter): Promise<ReadonlyMap<FactName, FactRecord>>;
  /** What was said of facts of a kind since then, for whoever keeps a copy of them. */
  factsSince(kind: string, position: string | null): Promise<FactNews>;
  list(filter?: ListFilter): Promise<readonly LeaseStatus[]>;
  /** Leases with these names, in whatever standing; a name without a lease is missing from the answer. */
  find(refs: readonly LeaseRef[]): Promise<readonly LeaseStatus[]>;
  /** Every lease that conflicts with one of these, whosever it is, and in whatever standing. */
  overlapping(extents: readonly Extent[]): Promise<readonly LeaseStatus[]>;
  /** How those of them ended that ended without their holder's release, lately. */
  endings(refs: readonly LeaseRef[]): Promise<readonly Ended[]>;
  waiters(): Promise<readonly Ticket[]>;
  /** The highest fencing token that was ever given out here. */
  highestToken(): Promise<number>;
  /** Everything that was logged, oldest first, archived segments included. */
  history(filter?: HistoryFilter): AsyncIterable<LoggedEvent>;
  /** Calls back with every event from now on, or after that sequence, until closed. */
  watch(listener: (event: LoggedEvent) => void, after?: number): Promise<Subscription>;
}

export interface Operation {
  readonly actor: Actor;
  /** A retry with the same id has the effect of doing it once. */
  readonly requestId: Ulid | null;
  readonly relay?: Relay;
}

/** Of an operation that is asked for through the daemon, and perhaps again without it: it is done once (PROTOCOL 28). */
export interface Relay {
  /** Names the operation in the log where it has no request id. */
  readonly operationId: Ulid;
  /** The first attempt got no answer: find out first whether it was done. */
  readonly isSecond?: boolean;
  /** Not to be begun after this, by the monotonic clock: whoever asked has gone on without it. */
  readonly beforeMs?: number;
  /** The process that asks, for the log. */
  readonly pid?: number;
}

export interface HeldRequest {
  readonly actor: Actor;
  readonly keys: readonly { readonly key: LeaseKey; readonly reach: Reach }[];
  readonly secrets: readonly string[];
  readonly ttlSecs: number;
  readonly bind: Bind;
}

export interface AcquireRequest extends Operation, HeldRequest {
  /** Of a process-bound lease: how long it lasts at most without a sign of life. */
  readonly atMostSecs?: number;
  readonly reason: string | null;
  readonly note: string | null;
  readonly secretHash: string;
  /** For each key in its turn; then again, for a grant after one that came to nothing: an id names one lease for ever. */
  readonly leaseIds: readonly LeaseId[];
  readonly steal: boolean;
  readonly wait: Wait | null;
  /** For claims that are shared between machines: do not ask the others. */
  readonly isOffline?: boolean;
  /** Leases that the actor has already follow it into this process. */
  readonly follows?: boolean;
  /** PROTOCOL 23: a grant's token is above this. */
  readonly aboveToken?: number;
  /** For claims that are shared between machines: the caller does not want it any more. What was begun is taken back. */
  readonly interrupted?: AbortSignal;
  /** Claims of other machines whose place a grant takes. */
  readonly elsewhere?: NonNullable<Acquire["elsewhere"]>;
}

export interface Wait {
  readonly timeoutMs: number;
  /** Told whenever the caller's place changes. */
  readonly onWait?: (place: { readonly ahead: number; readonly message: string }) => void;
  readonly signal?: AbortSignal;
}

export interface HolderRequest extends Operation {
  readonly leases: readonly LeaseRef[];
  readonly secrets: readonly string[];
  readonly secretHash: string;
}

export interface RenewRequest extends HolderRequest, Pick<Renew, "ttlSecs" | "overrideMax" | "reason"> {}

export interface ReleaseRequest extends HolderRequest, Pick<Release, "reason"> {}

export interface TransferRequest extends Operation, Omit<Transfer, "kind" | "proofs"> {
  readonly secrets: readonly string[];
}

export interface EvictRequest extends Operation, Omit<Evict, "kind"> {}

export interface StopRequest {
  readonly actor: Actor;
  readonly relay?: Relay;
  readonly leases: readonly LeaseRef[];
  readonly secrets: readonly string[];
}

export interface GcRequest {
  readonly actor: Actor;
}

export interface WriteRequest<T> extends Operation {
  /** Empty for a write that needs no lease. */
  readonly leases: readonly LeaseRef[];
  readonly secrets: readonly string[];
  readonly secretHash: string;
  readonly about: string;
  readonly facts: readonly FactName[];
  readonly factKinds?: readonly string[];
  readonly isOnlyLogged?: boolean;
  readonly body: Write<T>["body"];
}

/** For what goes into the log by nobody's lease. */
export const WITHOUT_LEASE = { leases: [], secrets: [], secretHash: "", requestId: null } as const;

export interface FactNews {
  /** Null: taken back. */
  readonly facts: ReadonlyMap<FactName, FactRecord | null>;
  /** These are all there are: whatever the caller has kept is to be thrown away. */
  readonly isAll: boolean;
  /** To be given the next time; null where only asking for all of them will do. */
  readonly position: string | null;
  /** How much had to be read for it since the given position. */
  readonly lines: number;
}

export interface FactFilter {
  readonly names?: readonly FactName[];
  readonly kinds?: readonly string[];
}

export interface Change {
  readonly leases: readonly Lease[];
  /** False when it was found done already. */
  readonly changed: boolean;
  /** True when the answer is the remembered one of an earlier call with the same request id. */
  readonly replayed: boolean;
  /** What the ledger had to say, where claims are shared between machines. */
  readonly ledger?: LedgerSay;
}

/** How a change of claims went beyond this clone. */
export interface LedgerSay {
  /** Who holds it now, as far as the ledger knows. */
  readonly claimedBy: string | null;
  /** How often somebody else was faster. */
  readonly retries: number;
  /** The remote was not asked, or did not answer: what was done is known to this clone only. */
  readonly isOffline: boolean;
  /** The remote should have been asked, and could not be. */
  readonly isDegraded: boolean;
  /** Claims of other machines that this has ended. */
  readonly endedThere?: readonly {
    readonly issueId: Ulid;
    readonly leaseId: LeaseId;
    readonly agentId: AgentId;
    /** The machine's name, for people. */
    readonly host: string;
  }[];
  /** Words for people. */
  readonly warnings: readonly string[];
}

export interface Grant extends Change {
  /** Leases of others, or lapsed ones, that this grant ended. */
  readonly ended: readonly Ended[];
  readonly waitedMs: number;
}

export interface LeaseStatus {
  readonly lease: Lease;
  readonly standing: Standing;
  readonly stale: boolean;
  /** Null without expiry. */
  readonly remainingMs: number | null;
  /** When a valid lease next needs a sign of life of its session. */
  readonly upkeepDueInMs: number;
}

export interface ListFilter {
  /** Only those on keys of these kinds, none of which is a path. */
  readonly kinds?: readonly Exclude<KeyKind, "file" | "dir">[];
  /** Also those that have lapsed and that nobody has taken since. */
  readonly lapsed?: boolean;
}

export interface HistoryFilter {
  readonly key?: LeaseKey;
  readonly leaseId?: LeaseId;
  readonly agentId?: AgentId;
  /** Only from there on; older segments are not even read. */
  readonly from?: { readonly sequence: number } | { readonly timeMs: number };
  /** Asked about every event that the rest lets through. */
  readonly where?: (event: LoggedEvent) => boolean;
  /** Only the last so many of those that match. */
  readonly newest?: number;
  /** Told of each file of the log in which there is something that cannot be read, and is left out. */
  readonly onUnreadable?: (path: string) => void;
  /**
   * For whoever adds up: also what comes before `from` in the oldest segment that is read, and every segment's
   * `log.checkpoint`, so that it is known what was held by then.
   */
  readonly ground?: boolean;
}

/** A line of the log, without its chain. */
export interface LoggedEvent {
  readonly schemaVersion: number;
  readonly sequence: number;
  readonly type: string;
  readonly timestamp: string;
  readonly actor: LogActor;
  readonly payload: Readonly<Record<string, unknown>>;
}

export interface Subscription {
  close(): void;
}
