import { isCount, LARGEST_COUNT, timeMsOf } from "../kernel/bounds";
import {
  type AgentId,
  type Branded,
  fencingToken,
  type LeaseId,
  type SessionId,
  trusted,
  type WorktreeId,
} from "../kernel/ids";
import type { LeaseKey } from "../kernel/keys";
import type { Bind, Ended, Holder, Lease, Reach, StoleFrom } from "../kernel/lease";
import type { Instant } from "../kernel/time";

/**
 * Leases as they stand in files: the names of docs/FORMATS.md, each instant twice (`expires_at` for people,
 * `expires_at_clock` for the check). Decoders accept nothing they do not understand: what they throw at is
 * damage, and is treated as such by whoever reads.
 */
export class WireError extends Error {}

type Wire = Readonly<Record<string, unknown>>;

/** What is undefined is left out when it is written. All is written out: objects put together from parts are slow. */
export function leaseToWire(lease: Lease): Record<string, unknown> {
  return {
    lease_id: lease.leaseId,
    key: lease.key,
    agent_id: lease.agentId,
    session_id: lease.sessionId,
    worktree_id: lease.worktreeId,
    branch: lease.branch,
    holder: holderToWire(lease.holder),
    ttl_secs: lease.ttlSecs,
    acquired_at: wallToWire(lease.acquiredAt),
    acquired_at_clock: clockToWire(lease.acquiredAt),
    renewed_at: wallToWire(lease.renewedAt),
    renewed_at_clock: clockToWire(lease.renewedAt),
    expires_at: wallToWire(lease.expiresAt),
    expires_at_clock: clockToWire(lease.expiresAt),
    last_beat: wallToWire(lease.lastBeat),
    last_beat_clock: clockToWire(lease.lastBeat),
    max_total_secs: lease.maxTotalSecs,
    fencing_token: lease.fencingToken,
    secret_hash: lease.secretHash,
    reason: lease.reason,
    note: lease.note,
    stop_idle_at: wallToWire(lease.stopIdleAt),
    stop_idle_at_clock: clockToWire(lease.stopIdleAt),
    bind: lease.bind,
    reach: lease.reach,
    stole_from: lease.stoleFrom.length === 0 ? undefined : lease.stoleFrom.map(stoleFromToWire),
  };
}

export function leaseFromWire(value: unknown): Lease {
  const w = object(value);
  return {
    leaseId: leaseId(w),
    key: key(w),
    worktreeId: worktreeId(w),
    agentId: agentId(w),
    sessionId: sessionId(w),
    branch: textOrNull(w, "branch"),
    holder: holderFromWire(w["holder"]),
    ttlSecs: count(w, "ttl_secs"),
    acquiredAt: instant(w, "acquired_at"),
    renewedAt: instant(w, "renewed_at"),
    expiresAt: instantOrNull(w, "expires_at"),
    lastBeat: instant(w, "last_beat"),
    maxTotalSecs: w["max_total_secs"] === null ? null : count(w, "max_total_secs"),
    fencingToken: fencingToken(count(w, "fencing_token")),
    secretHash: textOrNull(w, "secret_hash"),
    reason: textOrNull(w, "reason"),
    note: textOrNull(w, "note"),
    stopIdleAt: instantOrNull(w, "stop_idle_at"),
    bind: oneOf<Bind>(w, "bind", ["ttl", "process"]),
    reach: reach(w),
    stoleFrom: w["stole_from"] === undefined ? [] : list(w, "stole_from").map(stoleFromFromWire),
  };
}

export function endedToWire(ended: Ended): Record<string, unknown> {
  return {
    lease_id: ended.leaseId,
    key: ended.key,
    reach: ended.reach,
    worktree_id: ended.worktreeId,
    agent_id: ended.agentId,
    fencing_token: ended.fencingToken,
    cause: ended.how,
    successor: ended.successor,
    ...(ended.why === undefined ? {} : { why: ended.why }),
    ...(ended.toAgent === undefined ? {} : { to_agent: ended.toAgent }),
  };
}

export function endedFromWire(value: unknown): Ended {
  const w = object(value);
  return {
    leaseId: leaseId(w),
    key: key(w),
    worktreeId: worktreeId(w),
    reach: reach(w),
    agentId: agentId(w),
    fencingToken: fencingToken(count(w, "fencing_token")),
    how: oneOf<Ended["how"]>(w, "cause", [
      "released",
      "transferred",
      "expired",
      "dead",
      "stop_idle",
      "forced",
    ]),
    successor: trusted(textOrNull(w, "successor")),
    ...(w["why"] === undefined ? {} : { why: text(w, "why") }),
    ...(w["to_agent"] === undefined ? {} : { toAgent: matching(w, "to_agent", NAME) }),
  };
}

const KEY = /^(?:issue|file|dir|resource|ref|worktree|scope):[^\x00-\x1f\x7f]+$/;
const LEASE_ID = /^[0-9A-HJKMNP-TV-Z]{26}$/;
const WORKTREE_ID = /^wt:[0-9a-f]{8}$/;
const NAME = /^[\x21-\x7e]{1,200}$/;

/** Ids and keys become parts of file names: what does not look like one of ours must not get there. */
export function leaseId(w: Wire): LeaseId {
  return matching(w, "lease_id", LEASE_ID);
}

export function key(w: Wire): LeaseKey {
  return matching(w, "key", KEY);
}

export function worktreeId(w: Wire): WorktreeId {
  return matching(w, "worktree_id", WORKTREE_ID);
}

export function agentId(w: Wire): AgentId {
  return matching(w, "agent_id", NAME);
}

export function sessionId(w: Wire): SessionId {
  return matching(w, "session_id", NAME);
}

export function reach(w: Wire): Reach {
  return oneOf<Reach>(w, "reach", ["repository", "worktree"]);
}

export function holderToWire(holder: Holder): Record<string, unknown> {
  return {
    machine_id: holder.machineId,
    boot_id: holder.bootId,
    pid_namespace: holder.pidNamespace,
    time_namespace: holder.timeNamespace,
    user: holder.user,
    pid: holder.pid,
    start_time: holder.startTime,
  };
}

export function holderFromWire(value: unknown): Holder {
  const w = object(value);
  return {
    machineId: text(w, "machine_id"),
    bootId: text(w, "boot_id"),
    pidNamespace: text(w, "pid_namespace"),
    timeNamespace: text(w, "time_namespace"),
    user: text(w, "user"),
    pid: count(w, "pid"),
    startTime: text(w, "start_time"),
  };
}

/** A name that is put together anew is looked up anew, character by character. */
const CLOCKS = new Map<string, string>();

function clockOf(name: string): string {
  const known = CLOCKS.get(name);
  if (known !== undefined) return known;
  CLOCKS.set(name, `${name}_clock`);
  return `${name}_clock`;
}

export function instantToWire(name: string, instant: Instant | null): Record<string, unknown> {
  if (instant === null) return { [name]: null };
  return { [name]: wallToWire(instant), [clockOf(name)]: clockToWire(instant) };
}

function wallToWire(instant: Instant | null): string | null {
  return instant === null ? null : new Date(instant.wallMs).toISOString();
}

function clockToWire(instant: Instant | null): Wire | undefined {
  return instant === null ? undefined : { boot_id: instant.clockId, monotonic_ms: instant.monotonicMs };
}

export function instantOrNull(w: Wire, name: string): Instant | null {
  return w[name] === null ? null : instant(w, name);
}

export function instant(w: Wire, name: string): Instant {
  const clock = object(w[clockOf(name)]);
  const monotonicMs = clock["monotonic_ms"];
  // JSON has numbers that are none: 1e400.
  if (!Number.isFinite(monotonicMs)) throw new WireError(`bad instant ${name}`);
  return {
    wallMs: timeMs(w, name),
    clockId: text(clock, "boot_id"),
    monotonicMs: monotonicMs as number,
  };
}

export function timeMs(w: Wire, name: string): number {
  const wallMs = timeMsOf(w[name]);
  if (wallMs === null) throw new WireError(`${name} is not a time`);
  return wallMs;
}

export function object(value: unknown): Wire {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new WireError("not an object");
  return value as Wire;
}

export function objectOrNull(w: Wire, name: string): Wire | null {
  return w[name] === null || w[name] === undefined ? null : object(w[name]);
}

export function text(w: Wire, name: string): string {
  const value = w[name];
  if (typeof value !== "string") throw new WireError(`${name} is not text`);
  return value;
}

export function textOrNull(w: Wire, name: string): string | null {
  return w[name] === null || w[name] === undefined ? null : text(w, name);
}

export function count(w: Wire, name: string, largest = LARGEST_COUNT): number {
  const value = w[name];
  if (!isCount(value, largest)) throw new WireError(`${name} is not a whole number`);
  return value;
}

export function list(w: Wire, name: string): readonly unknown[] {
  const value = w[name];
  if (!Array.isArray(value)) throw new WireError(`${name} is not a list`);
  return value;
}

function matching<Name extends Branded<string>>(w: Wire, name: string, pattern: RegExp): Name {
  const value = text(w, name);
  if (!pattern.test(value)) throw new WireError(`${name} is ${JSON.stringify(value)}`);
  return trusted(value);
}

function oneOf<T extends string>(w: Wire, name: string, allowed: readonly T[]): T {
  const value = text(w, name);
  if (!(allowed as readonly string[]).includes(value)) throw new WireError(`${name} is ${value}`);
  return value as T;
}

function stoleFromToWire(from: StoleFrom): Record<string, unknown> {
  return { lease_id: from.leaseId, agent_id: from.agentId, why: from.why };
}

function stoleFromFromWire(value: unknown): StoleFrom {
  const w = object(value);
  return {
    leaseId: trusted(text(w, "lease_id")),
    agentId: agentId(w),
    why: oneOf(w, "why", ["expired", "dead", "stop_idle", "forced"]),
  };
}
