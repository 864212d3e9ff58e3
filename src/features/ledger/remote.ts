import type { Ulid } from "../../kernel/ids";
import { type ClaimRecord, type RecordReading, subjectOf } from "./record";

/** A claim's ref: where it points, and what stands there. */
export interface ClaimRef {
  readonly oid: string;
  readonly reading: RecordReading;
}

/** What the remote said when it was asked. */
export interface RemoteClaims {
  /** Those of the asked that exist. */
  readonly claims: ReadonlyMap<Ulid, ClaimRef>;
  /** The highest token that any claim had, as far as was ever heard (PROTOCOL 26). */
  readonly highestToken: number;
}

export interface ClaimUpdate {
  readonly issueId: Ulid;
  /** What the ref must be for the update to count; null: it must not exist. */
  readonly expected: string | null;
  readonly record: ClaimRecord;
  readonly subject: string;
}

/** An update whose commit is made, and not pushed yet: what may be at the remote afterwards is known by its name. */
export interface MadeUpdate extends ClaimUpdate {
  readonly oid: string;
  /** Part of the commit: made again from the same, it is the same. */
  readonly atMs: number;
}

/** Makes the claim what the record says, if it still is what it was. */
export function updateTo(record: ClaimRecord, expected: string | null): ClaimUpdate {
  return { issueId: record.issueId, expected, record, subject: subjectOf(record) };
}

export type PushOutcome =
  | { readonly kind: "done"; readonly oid: string }
  /** The remote said no: the ref was not what was expected, or it does not take it. */
  | { readonly kind: "rejected"; readonly why: string }
  /** Sent, and no answer: only the remote knows. */
  | { readonly kind: "unclear"; readonly oid: string; readonly why: string };

/**
 * Where claims are decided: one ref for each, changed by compare-and-swap. The real one is a Git remote; the simulator has
 * its own.
 */
export interface LedgerRemote {
  /**
   * Asks. Throws `E_REMOTE_UNREACHABLE`, `E_GIT_TIMEOUT`, `E_AUTH`, or `E_LEDGER_REWRITTEN` when what was seen before is
   * not part of what is there now.
   */
  look(ids: readonly Ulid[] | "all"): Promise<RemoteClaims>;
  /** What was last heard, for whoever wants to try on the strength of it; null where nothing was heard yet. Asks nobody. */
  recall(ids: readonly Ulid[]): Promise<RemoteClaims | null>;
  /** On this machine only: nobody is told. */
  make(updates: readonly ClaimUpdate[]): Promise<readonly MadeUpdate[]>;
  /** Each for itself, or all or none. Throws only when nothing can have been sent. */
  push(updates: readonly MadeUpdate[], isAtomic: boolean): Promise<readonly PushOutcome[]>;
  /** What was last heard of claims, without asking. */
  seen(ids: readonly Ulid[] | "all"): Promise<ReadonlyMap<Ulid, ClaimRef>>;
  /** At the end of an operation: remembers what was heard. Nothing depends on it. */
  settle(): Promise<void>;
}

/** The remote could not be asked. */
export function isUnreachable(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  return code === "E_REMOTE_UNREACHABLE" || code === "E_GIT_TIMEOUT";
}

export function tokenOf(ref: ClaimRef | null | undefined): number {
  return ref != null && "record" in ref.reading ? ref.reading.record.token : 0;
}
