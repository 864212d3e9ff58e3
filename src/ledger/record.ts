import { CotenantError } from "../errors/cotenant-error";
import { ISSUE_STATES, type IssueState } from "../issues/model";
import {
  type AgentId,
  type LeaseId,
  parseAgentId,
  parseUlid,
  parseWorktreeId,
  printable,
  type Ulid,
  type WorktreeId,
} from "../kernel/ids";
import { LIMITS } from "../kernel/policy";
import { isRefusal, type Refusal } from "../kernel/refusal";

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
}

export type RecordReading =
  | { readonly record: ClaimRecord }
  /** Its commit was written by a newer cotenant, or by nobody who knows how. */
  | { readonly broken: string; readonly isNewer: boolean };

const SCHEMA = 1;
const MOST_BYTES = 64 << 10;

/** The message of the claim's commit: a line for `git log`, and the record as one line of JSON. */
export function claimMessage(record: ClaimRecord, subject: string): string {
  return `${printable(subject, 200)}\n\n${JSON.stringify(recordToWire(record))}\n`;
}

export function subjectOf({ issueId, agentId, token, ended }: ClaimRecord): string {
  if (ended === null) return `Claim ${issueId} for ${agentId}, token ${token}`;
  if (ended.how === "stale") return `Auto-release stale claim on ${issueId} (was: ${agentId})`;
  if (ended.how === "evicted") return `End the claim of ${agentId} on ${issueId}, by ${ended.by}`;
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
  if (!Number.isSafeInteger(token) || (token as number) < 1 || (token as number) > LIMITS.token)
    throw new Error("its fencing token is none");
  return {
    issueId: parsed(wire, "issue_id", parseUlid),
    isHeld: status === "held",
    leaseId: parsed(wire, "lease_id", parseUlid),
    agentId: parsed(wire, "agent_id", parseAgentId),
    worktreeId: parsed(wire, "worktree_id", parseWorktreeId),
    cloneId: parsed(wire, "clone_id", parseUlid),
    host: typeof wire["host"] === "string" ? printable(wire["host"], 100) : "",
    token: token as number,
    acquiredAtMs: instant(wire, "acquired_at"),
    beatAtMs: instant(wire, "beat_at"),
    expiresAtMs: wire["expires_at"] === null ? null : instant(wire, "expires_at"),
    ended: isObject(ended) ? endFrom(ended) : null,
    issue: isObject(issue) ? markFrom(issue) : null,
  };
}

function endFrom(wire: Record<string, unknown>): NonNullable<ClaimRecord["ended"]> {
  const how = ENDS.find((end) => end === wire["how"]) ?? "released";
  return { how, by: parsed(wire, "by", parseAgentId), atMs: instant(wire, "at") };
}

const ENDS: readonly ClaimEnd[] = ["released", "stale", "evicted", "withdrawn"];

function markFrom(wire: Record<string, unknown>): IssueMark | null {
  const { version, state, deleted } = wire;
  if (!Number.isSafeInteger(version) || !ISSUE_STATES.includes(state as IssueState)) return null;
  return { version: version as number, state: state as IssueState, isDeleted: deleted === true };
}

function parsed<T>(wire: Record<string, unknown>, name: string, parse: (text: string) => T | Refusal): T {
  const value = wire[name];
  const found = typeof value === "string" ? parse(value) : null;
  if (found === null || isRefusal(found)) throw new Error(`its ${name} is none`);
  return found;
}

function instant(wire: Record<string, unknown>, name: string): number {
  const ms = typeof wire[name] === "string" ? Date.parse(wire[name] as string) : Number.NaN;
  if (Number.isNaN(ms)) throw new Error(`its ${name} is no time`);
  return ms;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
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
