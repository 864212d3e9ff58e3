import { CotenantError } from "../../errors/cotenant-error";
import { isCount, timeMsOf } from "../../kernel/bounds";
import {
  type AgentId,
  type LeaseId,
  parseAgentId,
  parseUlid,
  parseWorktreeId,
  printable,
  type Ulid,
  type WorktreeId,
} from "../../kernel/ids";
import type { StoleFrom } from "../../kernel/lease";
import { LIMITS } from "../../kernel/policy";
import { isRefusal, type Refusal } from "../../kernel/refusal";
import { ISSUE_STATES, type IssueState } from "../issues/model";

/** How a claim came to its end, where it has. */
export type ClaimEnd = "released" | "stale" | "evicted" | "withdrawn";

/** What was last written of the issue, as whoever held it knew it: enough not to offer finished work again. */
export interface IssueMark {
  readonly version: number;
  readonly state: IssueState;
  readonly isDeleted: boolean;
}

/**
 * Who holds an issue, among all machines: the record that a claim's ref points at. A released claim leaves one as well,
 * its tombstone, so that the next token is higher.
 */
export interface ClaimRecord {
  readonly issueId: Ulid;
  readonly isHeld: boolean;
  readonly leaseId: LeaseId;
  readonly agentId: AgentId;
  readonly worktreeId: WorktreeId;
  /** The clone whose store granted the lease. */
  readonly cloneId: Ulid;
  /** Of its machine, for people. */
  readonly host: string;
  readonly token: number;
  readonly acquiredAtMs: number;
  readonly beatAtMs: number;
  /** Null: until it is released, or `sync.claim_timeout_hours` after its last beat. */
  readonly expiresAtMs: number | null;
  readonly ended: { readonly how: ClaimEnd; readonly by: AgentId; readonly atMs: number } | null;
  readonly issue: IssueMark | null;
  /** Why it was taken, or ended, as whoever did it said. */
  readonly reason: string | null;
  /** Whose claims it took the place of. */
  readonly stoleFrom: readonly StoleFrom[];
  /** SHA-256 of what was last written to the issue's `issue.json` under it, oldest first; told when it ends. */
  readonly written: readonly string[];
}

export type RecordReading =
  | { readonly record: ClaimRecord }
  /** Its commit was written by a newer cotenant, or by nobody who knows how. */
  | { readonly broken: string; readonly isNewer: boolean };

const SCHEMA = 1;
const MOST_BYTES = 64 << 10;
/** One claim takes the place of one other; here only of those that it found lapsed as well. */
export const MOST_STOLEN_FROM = 8;
/** Enough for the commits that somebody has not pushed yet when a claim ends. */
export const MOST_WRITTEN = 16;

/** The message of the claim's commit: a line for `git log`, and the record as one line of JSON. */
export function claimMessage(record: ClaimRecord, subject: string): string {
  return `${printable(subject, 200)}\n\n${JSON.stringify(recordToWire(record))}\n`;
}

export function subjectOf({ issueId, agentId, token, ended, reason, stoleFrom }: ClaimRecord): string {
  if (ended === null) {
    const forced = stoleFrom.filter(({ why }) => why === "forced").map((from) => from.agentId);
    const taken = forced.length === 0 ? "" : `, taken from ${forced.join(", ")}: ${reason}`;
    return `Claim ${issueId} for ${agentId}, token ${token}${taken}`;
  }
  if (ended.how === "stale") return `Auto-release stale claim on ${issueId} (was: ${agentId})`;
  if (ended.how === "evicted") return `End the claim of ${agentId} on ${issueId}, by ${ended.by}: ${reason}`;
  return `Release ${issueId} by ${agentId}`;
}

function recordToWire(record: ClaimRecord): Record<string, unknown> {
  const { ended, issue } = record;
  return {
    schema_version: SCHEMA,
    issue_id: record.issueId,
    status: record.isHeld ? "held" : "released",
    lease_id: record.leaseId,
    agent_id: record.agentId,
    worktree_id: record.worktreeId,
    clone_id: record.cloneId,
    host: record.host,
    fencing_token: record.token,
    acquired_at: iso(record.acquiredAtMs),
    beat_at: iso(record.beatAtMs),
    expires_at: record.expiresAtMs === null ? null : iso(record.expiresAtMs),
    ended: ended === null ? null : { how: ended.how, by: ended.by, at: iso(ended.atMs) },
    issue: issue === null ? null : { version: issue.version, state: issue.state, deleted: issue.isDeleted },
    reason: record.reason,
    stole_from: record.stoleFrom.map((from) => ({
      lease_id: from.leaseId,
      agent_id: from.agentId,
      why: from.why,
    })),
    written: record.written,
  };
}

/** Never throws: anybody who may push can have written it. */
export function readClaim(issueId: Ulid, message: string): RecordReading {
  if (message.length > MOST_BYTES) return broken("it is too large");
  const line = message.trimEnd().split("\n").at(-1) ?? "";
  let wire: Record<string, unknown>;
  try {
    wire = JSON.parse(line) as Record<string, unknown>;
  } catch {
    return broken("it has no record");
  }
  if (typeof wire !== "object" || wire === null) return broken("it has no record");
  const version = wire["schema_version"];
  if (typeof version === "number" && version > SCHEMA)
    return { broken: `it has the format ${version}, of a newer cotenant`, isNewer: true };
  try {
    const record = recordFrom(wire);
    return record.issueId === issueId ? { record } : broken("it is of another issue");
  } catch (error) {
    return broken((error as Error).message);
  }
}

function broken(why: string): RecordReading {
  return { broken: why, isNewer: false };
}

function recordFrom(wire: Record<string, unknown>): ClaimRecord {
  const { ended, issue, status } = wire;
  if (status !== "held" && status !== "released") throw new Error("its status is neither held nor released");
  const token = wire["fencing_token"];
  if (!isCount(token) || token < 1) throw new Error(`its fencing token is out of bounds: ${shown(token)}`);
  return {
    issueId: parsed(wire, "issue_id", parseUlid),
    isHeld: status === "held",
    leaseId: parsed(wire, "lease_id", parseUlid),
    agentId: parsed(wire, "agent_id", parseAgentId),
    worktreeId: parsed(wire, "worktree_id", parseWorktreeId),
    cloneId: parsed(wire, "clone_id", parseUlid),
    host: typeof wire["host"] === "string" ? printable(wire["host"], 100) : "",
    token,
    acquiredAtMs: instant(wire, "acquired_at"),
    beatAtMs: instant(wire, "beat_at"),
    expiresAtMs: wire["expires_at"] === null ? null : instant(wire, "expires_at"),
    ended: isObject(ended) ? endFrom(ended) : null,
    issue: isObject(issue) ? markFrom(issue) : null,
    reason: typeof wire["reason"] === "string" ? printable(wire["reason"], LIMITS.textLength) : null,
    stoleFrom: stolenFrom(wire["stole_from"]),
    written: writtenIn(wire["written"]),
  };
}

function endFrom(wire: Record<string, unknown>): NonNullable<ClaimRecord["ended"]> {
  const how = ENDS.find((end) => end === wire["how"]) ?? "released";
  return { how, by: parsed(wire, "by", parseAgentId), atMs: instant(wire, "at") };
}

const ENDS: readonly ClaimEnd[] = ["released", "stale", "evicted", "withdrawn"];

function markFrom(wire: Record<string, unknown>): IssueMark | null {
  const { version, state, deleted } = wire;
  if (!ISSUE_STATES.includes(state as IssueState)) return null;
  if (!isCount(version)) throw new Error(`its issue's version is out of bounds: ${shown(version)}`);
  return { version, state: state as IssueState, isDeleted: deleted === true };
}

/** Of machines with an older cotenant there is none. */
function stolenFrom(value: unknown): StoleFrom[] {
  return (Array.isArray(value) ? value : []).slice(0, MOST_STOLEN_FROM).flatMap((wire): StoleFrom[] => {
    if (!isObject(wire)) return [];
    const why = wire["why"] === "forced" ? "forced" : "expired";
    return [
      { leaseId: parsed(wire, "lease_id", parseUlid), agentId: parsed(wire, "agent_id", parseAgentId), why },
    ];
  });
}

function writtenIn(value: unknown): string[] {
  const digests = Array.isArray(value) ? (value as unknown[]) : [];
  return digests
    .filter((one): one is string => typeof one === "string" && /^[0-9a-f]{64}$/.test(one))
    .slice(-MOST_WRITTEN);
}

function parsed<T>(wire: Record<string, unknown>, name: string, parse: (text: string) => T | Refusal): T {
  const value = wire[name];
  const found = typeof value === "string" ? parse(value) : null;
  if (found === null || isRefusal(found)) throw new Error(`its ${name} is none`);
  return found;
}

function instant(wire: Record<string, unknown>, name: string): number {
  const ms = timeMsOf(wire[name]);
  if (ms === null) throw new Error(`its ${name} is no time within bounds: ${shown(wire[name])}`);
  return ms;
}

function shown(value: unknown): string {
  return printable(JSON.stringify(value) ?? "missing", 60);
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** A claim that cannot be read is left as it is, and is nobody's to take. */
export function unreadableClaim(issueId: Ulid, reading: { broken: string; isNewer: boolean }): CotenantError {
  const message = `the claim on issue ${issueId} at the remote cannot be read: ${reading.broken}`;
  const data = { issue_id: issueId };
  return reading.isNewer
    ? new CotenantError("E_SCHEMA_NEWER", message, { data })
    : new CotenantError("E_LEDGER_REWRITTEN", message, {
        hint: "look at it ('git ls-remote', 'git log' of its ref): somebody has pushed there by hand",
        data,
      });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** Which issues they are about. */
export function idsOf(claims: readonly { readonly issueId: Ulid }[]): Ulid[] {
  return claims.map(({ issueId }) => issueId);
}
