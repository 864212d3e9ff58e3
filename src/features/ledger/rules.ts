import type { ConfigValues } from "../../config/schema";
import type { Ulid } from "../../kernel/ids";
import type { Lease } from "../../kernel/lease";
import { TERMINAL_STATES } from "../issues/model";
import type { Confirmation } from "./confirmations";
import { type ClaimEnd, type ClaimRecord, type IssueMark, MOST_STOLEN_FROM } from "./record";

/** What decides about claims besides their records. */
export interface ClaimRules {
  readonly skewMs: number;
  /** For records without expiry: from their last beat. Null: never. */
  readonly timeoutMs: number | null;
  readonly ttlMs: number;
}

export function rulesOf(values: ConfigValues): ClaimRules {
  const hours = values["sync.claim_timeout_hours"];
  return {
    skewMs: values["sync.clock_skew_secs"] * 1000,
    timeoutMs: hours === null ? null : hours * 3_600_000,
    ttlMs: values["sync.claim_ttl_secs"] * 1000,
  };
}

/** What a claim's record means to somebody who wants the issue. */
export type Verdict =
  /** Never claimed, or given back. */
  | { readonly kind: "free" }
  /** Of this clone: its own store knows whether that lease still stands. */
  | { readonly kind: "ours"; readonly record: ClaimRecord }
  /** Another's that has run out, by a margin that clocks may be off by. */
  | { readonly kind: "lapsed"; readonly record: ClaimRecord; readonly why: "expired" | "stale" }
  | { readonly kind: "held"; readonly record: ClaimRecord };

/**
 * Clocks decide who waits, never who writes (PROTOCOL 27): whoever takes a claim does it by compare-and-swap, and whoever
 * publishes under one is fenced there.
 */
export function judge(record: ClaimRecord | null, cloneId: Ulid, nowMs: number, rules: ClaimRules): Verdict {
  if (record === null || !record.isHeld) return { kind: "free" };
  if (record.cloneId === cloneId) return { kind: "ours", record };
  const why = lapse(record, nowMs, rules);
  return why === null ? { kind: "held", record } : { kind: "lapsed", record, why };
}

/** Why a held claim does not count any more; null while it does. */
export function lapse(record: ClaimRecord, nowMs: number, rules: ClaimRules): "expired" | "stale" | null {
  const { expiresAtMs, beatAtMs } = record;
  if (expiresAtMs !== null) return nowMs > expiresAtMs + rules.skewMs ? "expired" : null;
  const { timeoutMs } = rules;
  return timeoutMs !== null && nowMs > beatAtMs + timeoutMs + rules.skewMs ? "stale" : null;
}

/** When a claim may be taken over at the earliest; null while nothing ends it. */
export function freeAtMs({ expiresAtMs, beatAtMs }: ClaimRecord, rules: ClaimRules): number | null {
  if (expiresAtMs !== null) return expiresAtMs + rules.skewMs;
  return rules.timeoutMs === null ? null : beatAtMs + rules.timeoutMs + rules.skewMs;
}

/** Whoever held it last has finished the issue, or deleted it. */
export function isOver(mark: IssueMark | null): boolean {
  return mark !== null && (mark.isDeleted || TERMINAL_STATES.includes(mark.state));
}

/** A lease as others are to see it. */
export function recordOf(lease: Lease, of: { issueId: Ulid; cloneId: Ulid; host: string }): ClaimRecord {
  return {
    ...of,
    // Said when it ends: until then only its holder changes the issue.
    issue: null,
    isHeld: true,
    leaseId: lease.leaseId,
    agentId: lease.agentId,
    worktreeId: lease.worktreeId,
    token: lease.fencingToken,
    acquiredAtMs: lease.acquiredAt.wallMs,
    beatAtMs: Math.max(lease.lastBeat.wallMs, lease.renewedAt.wallMs),
    expiresAtMs: lease.expiresAt?.wallMs ?? null,
    ended: null,
    reason: lease.reason,
    stoleFrom: lease.stoleFrom.slice(0, MOST_STOLEN_FROM),
    written: [],
  };
}

export function tombstone(
  record: ClaimRecord,
  ended: { how: ClaimEnd; by: ClaimRecord["agentId"]; atMs: number },
  issue: IssueMark | null,
  more: { readonly reason?: string | null; readonly written?: readonly string[] } = {},
): ClaimRecord {
  const { reason = null, written = record.written } = more;
  return { ...record, isHeld: false, ended, issue: newer(issue, record.issue), reason, written };
}

function newer(a: IssueMark | null, b: IssueMark | null): IssueMark | null {
  if (a === null || b === null) return a ?? b;
  return b.version > a.version ? b : a;
}

/**
 * Whether others must hear of a claim again: a sign of life at most every third of the time that its absence is allowed to
 * last; at once, when it now ends at a time so different from the one they know that they would take it too early or too late.
 */
export function isBeatDue(
  { pushedAtMs, expiresAtMs }: Pick<Confirmation, "pushedAtMs" | "expiresAtMs">,
  endsAtMs: number | null,
  nowMs: number,
  rules: ClaimRules,
): boolean {
  if ((endsAtMs === null) !== (expiresAtMs === null)) return true;
  if (Math.abs((endsAtMs ?? 0) - (expiresAtMs ?? 0)) > rules.ttlMs / 3) return true;
  const allowedMs = expiresAtMs === null ? rules.timeoutMs : rules.ttlMs;
  if (allowedMs === null) return false;
  // A clock that was set back must not silence us.
  return (
    nowMs - pushedAtMs >= allowedMs / 3 ||
    nowMs < pushedAtMs ||
    (expiresAtMs !== null && nowMs > expiresAtMs - allowedMs / 3)
  );
}

const FIRST_MS = 100;
const LONGEST_MS = 5_000;

/** 100 ms, doubling up to 5 s, give or take a fifth. `chance` is from 0 to 1. */
export function backoffMs(attempt: number, chance: number): number {
  const base = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(attempt, 16));
  return Math.round(base * (0.8 + 0.4 * chance));
}
