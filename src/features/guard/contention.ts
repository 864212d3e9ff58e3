import { type Fact, type FactName, factName } from "../../kernel/facts";
import { type AgentId, type LeaseId, type SessionId, trusted } from "../../kernel/ids";
import { type LeaseKey, nameOf } from "../../kernel/keys";
import type { Holder, Lease, Party } from "../../kernel/lease";
import { elapsedMs, type Instant, later, type Now, remainingMs } from "../../kernel/time";
import type { Digest } from "../../platform/platform";

export const CONTENTION = "contention";

/**
 * - `waiting`: denied; the one retry is due at `retryAt`
 * - `retried`: it was made, in vain, and the report is about to be written
 * - `blocked`: it was made, in vain: a person has to say how to go on
 * - `freed`: it was blocked, and what was in the way has gone
 */
export type ContentionState = "waiting" | "retried" | "blocked" | "freed";

/** Whether its agent was stopped, or is about to be, and may not go on yet. */
export function isReported(state: ContentionState): boolean {
  return state === "blocked" || state === "retried";
}

/** Whoever is in the way. */
export interface Owner {
  readonly agentId: AgentId;
  readonly sessionId: SessionId | null;
  readonly leaseId: LeaseId | null;
  /** What exactly it holds: for a directory that is wanted, mostly a file in it. */
  readonly heldKey: LeaseKey | null;
  readonly acquiredAt: Instant | null;
  readonly lastBeat: Instant | null;
  /** Other leases in the way of the same thing: of a directory, more files in it. Looked up each time, never stored. */
  readonly also?: readonly Owner[];
}

/** One party that wants one file, and another that has it. */
export interface Contention extends Party {
  readonly key: LeaseKey;
  readonly path: string;
  /** The waiting party's harness. */
  readonly holder: Holder;
  readonly owner: Owner;
  readonly deniedAt: Instant;
  readonly retryAt: Instant;
  readonly retrySecs: number;
  /** What the file was like when it was denied; null when it was not there. */
  readonly content: string | null;
  readonly state: ContentionState;
  /** When the agent that was blocked ended; null while it lives, and where it died without a word. */
  readonly endedAt: Instant | null;
}

/** The six fields of seed 001, in their order. */
export interface BlockerReport {
  readonly blocked_file: string;
  readonly owner: string;
  readonly lock_age_secs: number;
  readonly last_heartbeat_at: string | null;
  readonly retry_interval_secs: number;
  readonly state: "waiting_for_instruction";
}

/** One for each file that is held. */
export function blockerReports(contention: Contention, now: Now): BlockerReport[] {
  const reports = ownersOf(contention).map((owner) => blockerReport(contention, owner, now));
  return reports.filter(
    ({ blocked_file: file }, at) => at === reports.findIndex(({ blocked_file: other }) => other === file),
  );
}

function blockerReport(contention: Contention, owner: Owner, now: Now): BlockerReport {
  return {
    blocked_file: heldPath(contention, owner),
    owner: owner.agentId,
    lock_age_secs:
      owner.acquiredAt === null ? 0 : Math.max(0, Math.floor(elapsedMs(owner.acquiredAt, now) / 1000)),
    last_heartbeat_at: owner.lastBeat === null ? null : isoOf(owner.lastBeat),
    retry_interval_secs: contention.retrySecs,
    state: "waiting_for_instruction",
  };
}

/** Everybody in the way of one thing, once for each lease. */
export function ownersOf({ owner }: Pick<Contention, "owner">): readonly Owner[] {
  return [owner, ...(owner.also ?? [])];
}

/** What is in the way, as people write it: of a directory that is wanted, what is held in it. */
export function heldPath({ path }: Pick<Contention, "path">, { heldKey }: Owner): string {
  if (heldKey === null) return path;
  const held = nameOf(heldKey);
  return path === "." || held.startsWith(`${path}/`) ? held : path;
}

export function ownerOf(lease: Lease): Owner {
  const { agentId, sessionId, leaseId, key: heldKey, acquiredAt, lastBeat } = lease;
  return { agentId, sessionId, leaseId, heldKey, acquiredAt, lastBeat };
}

/** Exactly so much later, on whichever clock is asked. */
export function dueAt(deniedAt: Instant, retrySecs: number): Instant {
  return later(deniedAt, retrySecs * 1000);
}

/** What is to be done about a file that a party was denied before. */
export type Step = "wait" | "try" | "report";

/** `isFree`: nobody else holds it now. Then an attempt is made also before its time: anybody else would get it, too. */
export function nextStep({ state, retryAt }: Contention, now: Now, isFree: boolean): Step {
  if (isFree || state === "freed") return "try";
  if (state === "blocked" || state === "retried") return "report";
  return remainingMs(retryAt, now) <= 0 ? "try" : "wait";
}

export function contentionName(digest: Digest, party: Party, key: LeaseKey): FactName {
  const { agentId, sessionId, worktreeId } = party;
  // Two harnesses' hooks of one edit are one party, under two names.
  const id = digest.sha256([withoutHarness(agentId), sessionId, worktreeId, key].join("\n")).slice(0, 32);
  return factName(CONTENTION, id);
}

/** What two harnesses that report one edit call its agent alike. */
export function withoutHarness(agentId: AgentId): string {
  return agentId.slice(agentId.indexOf("-") + 1);
}

// --- as a fact --------------------------------------------------------------------------------------------

export function contentionToFact(contention: Contention): Fact {
  const { owner, holder } = contention;
  return {
    agent_id: contention.agentId,
    session_id: contention.sessionId,
    worktree_id: contention.worktreeId,
    key: contention.key,
    path: contention.path,
    holder: { ...holder },
    owner: {
      agent_id: owner.agentId,
      session_id: owner.sessionId,
      lease_id: owner.leaseId,
      held_key: owner.heldKey,
      acquired_at: owner.acquiredAt,
      last_beat: owner.lastBeat,
    },
    denied_at: contention.deniedAt,
    retry_at: contention.retryAt,
    retry_secs: contention.retrySecs,
    content: contention.content,
    state: contention.state,
    ...(contention.endedAt === null ? {} : { ended_at: contention.endedAt }),
  };
}

/** Null for what cannot be understood: a newer version's, or damage. */
export function contentionFromFact(fact: Fact): Contention | null {
  const owner = fact["owner"] as Fact | undefined;
  const [deniedAt, retryAt] = [instantFrom(fact["denied_at"]), instantFrom(fact["retry_at"])];
  const state = STATES.find((known) => known === fact["state"]);
  if (
    typeof owner !== "object" ||
    owner === null ||
    deniedAt === null ||
    retryAt === null ||
    state === undefined
  )
    return null;
  const { key, path, holder, content, retry_secs: retrySecs } = fact;
  if (typeof key !== "string" || typeof path !== "string" || typeof holder !== "object" || holder === null)
    return null;
  return {
    agentId: trusted(String(fact["agent_id"])),
    sessionId: trusted(String(fact["session_id"])),
    worktreeId: trusted(String(fact["worktree_id"])),
    key: trusted(key),
    path,
    holder: holder as Holder,
    owner: {
      agentId: trusted(String(owner["agent_id"])),
      sessionId: trusted(textOrNull(owner["session_id"])),
      leaseId: trusted(textOrNull(owner["lease_id"])),
      heldKey: trusted(textOrNull(owner["held_key"])),
      acquiredAt: instantFrom(owner["acquired_at"]),
      lastBeat: instantFrom(owner["last_beat"]),
    },
    deniedAt,
    retryAt,
    retrySecs: Number(retrySecs),
    content: textOrNull(content),
    state,
    endedAt: instantFrom(fact["ended_at"]),
  };
}

const STATES: readonly ContentionState[] = ["waiting", "retried", "blocked", "freed"];

function instantFrom(value: unknown): Instant | null {
  if (typeof value !== "object" || value === null) return null;
  const { wallMs, clockId, monotonicMs } = value as Record<string, unknown>;
  if (typeof wallMs !== "number" || typeof clockId !== "string" || typeof monotonicMs !== "number")
    return null;
  return { wallMs, clockId, monotonicMs };
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

export function isoOf({ wallMs }: Instant): string {
  return new Date(wallMs).toISOString();
}
