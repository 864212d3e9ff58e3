import type { Approval, ClaimEvent, ClaimEventType } from "../kernel/view";
import { CLAIM_EVENTS } from "../kernel/view";
import type { Digest } from "../platform/platform";
import { SCHEMA_VERSION } from "./schema";
import {
  count,
  endedFromWire,
  endedToWire,
  leaseFromWire,
  leaseToWire,
  list,
  object,
  text,
  textOrNull,
  timeMs,
  WireError,
} from "./wire";

export interface LogActor {
  readonly agentId: string;
  readonly sessionId: string;
  readonly worktreeId: string;
  readonly host: string;
  readonly pid: number;
}

/** What a writer wants to say. */
export interface Entry {
  readonly type: string;
  readonly actor: LogActor;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** A line of the log: an entry in its place. */
export interface Line extends Entry {
  readonly schemaVersion: number;
  readonly sequence: number;
  readonly timestamp: string;
  /** The highest sequence its writer knew to be durable (PROTOCOL 5). */
  readonly synced: number;
  readonly prev: string;
  readonly sum: string;
}

export const SUM_LENGTH = 32;
const SUFFIX_LENGTH = ',"sum":""}'.length + SUM_LENGTH;
const SUFFIX = new RegExp(`,"sum":"([0-9a-f]{${SUM_LENGTH}})"}$`);

export function sumOf(digest: Digest, data: string): string {
  return digest.sha256(data).slice(0, SUM_LENGTH);
}

/** The line's text with its newline, and the sum that the next line chains to. */
export function encodeLine(
  digest: Digest,
  entry: Entry,
  place: { sequence: number; wallMs: number; synced: number; prev: string },
): { text: string; sum: string } {
  const body = JSON.stringify({
    schema_version: SCHEMA_VERSION,
    sequence: place.sequence,
    event_type: entry.type,
    timestamp: new Date(place.wallMs).toISOString(),
    actor: {
      agent_id: entry.actor.agentId,
      session_id: entry.actor.sessionId,
      worktree_id: entry.actor.worktreeId,
      host: entry.actor.host,
      pid: entry.actor.pid,
    },
    payload: entry.payload,
    synced: place.synced,
    prev: place.prev,
  });
  const sum = sumOf(digest, body);
  return { text: `${body.slice(0, -1)},"sum":"${sum}"}\n`, sum };
}

/** Null when the line is not whole: torn, zeroed, altered, or not ours. */
export function decodeLine(digest: Digest, lineText: string): Line | null {
  const sum = SUFFIX.exec(lineText.slice(-SUFFIX_LENGTH))?.[1];
  if (sum === undefined || sumOf(digest, `${lineText.slice(0, -SUFFIX_LENGTH)}}`) !== sum) return null;
  try {
    const w = object(JSON.parse(lineText));
    const actor = object(w["actor"]);
    timeMs(w, "timestamp");
    return {
      schemaVersion: count(w, "schema_version"),
      sequence: count(w, "sequence"),
      type: text(w, "event_type"),
      timestamp: text(w, "timestamp"),
      actor: {
        agentId: text(actor, "agent_id"),
        sessionId: text(actor, "session_id"),
        worktreeId: text(actor, "worktree_id"),
        host: text(actor, "host"),
        pid: count(actor, "pid"),
      },
      payload: object(w["payload"]),
      synced: count(w, "synced"),
      prev: text(w, "prev"),
      sum,
    };
  } catch (error) {
    if (error instanceof WireError || error instanceof SyntaxError) return null;
    throw error;
  }
}

export function claimPayload(
  event: ClaimEvent,
  ids: { requestId: string | null; operationId: string },
  waitedMs: number | null = null,
): Record<string, unknown> {
  return {
    ...(ids.requestId === null ? { operation_id: ids.operationId } : { request_id: ids.requestId }),
    ...(event.reason === null ? {} : { reason: event.reason }),
    ...(waitedMs === null ? {} : { waited_ms: waitedMs }),
    ...(event.isOverruled === true ? { overruled: true } : {}),
    ...(event.approval === undefined ? {} : approvalToWire(event.approval)),
    leases: event.leases.map(leaseToWire),
    ended: event.ended.map(endedToWire),
  };
}

function approvalToWire({ proposalId, proposedBy, approvedBy }: Approval): Record<string, unknown> {
  return { proposal_id: proposalId, proposed_by: proposedBy, approved_by: approvedBy };
}

/** The claim event a line carries, or null for other kinds of line. Throws WireError on nonsense. */
export function claimEventOf(line: Line): ClaimEvent | null {
  if (!(CLAIM_EVENTS as readonly string[]).includes(line.type)) return null;
  return {
    type: line.type as ClaimEventType,
    leases: list(line.payload, "leases").map(leaseFromWire),
    ended: list(line.payload, "ended").map(endedFromWire),
    reason: textOrNull(line.payload, "reason"),
    ...(line.payload["overruled"] === true ? { isOverruled: true } : {}),
  };
}
