import { LATEST_MS } from "../kernel/bounds";
import type { FactName, FactRecord } from "../kernel/facts";
import { type FencingToken, fencingToken, type LeaseId, ulidIn, ulidTimeMs } from "../kernel/ids";
import { type Ended, type Lease, type Slot, slotOf } from "../kernel/lease";
import { applyTo, type ClaimEvent, tokenAfter } from "../kernel/view";
import type { Descriptor, Digest, Files } from "../platform/platform";
import { claimEventOf, decodeLine, type Line } from "./envelope";
import { factsFromWire, factsOf } from "./facts";
import { refuseNewer, refuseNewerText } from "./schema";
import {
  count,
  endedFromWire,
  leaseFromWire,
  list,
  object,
  objectOrNull,
  text,
  textOrNull,
  timeMs,
  WireError,
} from "./wire";

/** Where a reader of the log stands: everything before this is understood and chained. */
export interface Head {
  readonly segment: number;
  readonly offset: number;
  readonly sequence: number;
  readonly sum: string;
  readonly nextToken: FencingToken;
  /** Size of the checkpoint that the segment starts with: rotation waits until the log has grown well past it. */
  readonly checkpointEnd: number;
}

export const NOWHERE: Head = {
  segment: 0,
  offset: 0,
  sequence: 0,
  sum: "",
  nextToken: fencingToken(1),
  checkpointEnd: 0,
};

/** What an operation with a request id came to, kept for as long as it may be retried. */
export interface RequestRecord {
  readonly requestId: string;
  readonly agentId: string;
  readonly type: string;
  readonly timestamp: string;
  readonly leases: readonly Lease[];
  readonly ended: readonly Ended[];
  /** Of a write: what it was about, and what it answered. */
  readonly about: string | null;
  readonly result: Readonly<Record<string, unknown>> | null;
}

export interface EndingRecord {
  readonly ended: Ended;
  readonly atMs: number;
}

export interface Damage {
  readonly offset: number;
  /** The sequence that should have stood there. */
  readonly sequence: number;
  readonly why: string;
  /** In the checkpoint that the segment starts with, or instead of it. */
  readonly inCheckpoint: boolean;
  /** A line with an end that does not belong there: no writer at work leaves one. */
  readonly isWholeLine: boolean;
}

/** For how long a request id is accepted, and a former holder told how its lease ended. */
export const MEMORY_MS = 24 * 3600 * 1000;
/** Ids are kept for longer than they are accepted: the two are checked at different times, by different clocks. */
const MARGIN_MS = 3600 * 1000;

/** The view that a stretch of log adds up to. */
export class Replay {
  head: Head;
  readonly leases = new Map<Slot, Lease>();
  readonly endings = new Map<LeaseId, EndingRecord>();
  readonly requests = new Map<string, RequestRecord>();
  readonly facts = new Map<FactName, FactRecord>();
  /** Names that the stretch said anything about; null means that it was taken back. */
  readonly touchedFacts = new Map<FactName, FactRecord | null>();
  /** Slots that the stretch said anything about; null means that nothing stands there now. */
  readonly touched = new Map<Slot, Lease | null>();
  /** The highest fencing token that the stretch knows of, per slot. */
  readonly tokens = new Map<Slot, FencingToken>();
  /** Tokens in lines that could not be salvaged. */
  readonly mentioned: number[] = [];
  damage: Damage | null = null;
  highestSynced = 0;
  /** The latest time that any of it was written at, or asked for at, by clocks that may have been set back since. */
  newestMs = 0;
  counted = 0;
  /** Whether all parts of the checkpoint are there, without which a segment means nothing. */
  isGrounded: boolean;

  constructor(from: Head = NOWHERE) {
    this.head = from;
    this.isGrounded = from.offset > 0;
  }

  /** What a line that is lost still says of tokens: what it gave out must not be given out again. */
  mention(lineText: string): void {
    for (const [, digits] of lineText.matchAll(/"fencing_token":(\d{1,16})\b/g))
      this.mentioned.push(Number(digits));
  }

  /** Why the line cannot follow, or null when it was taken. */
  take(line: Line, end: number): string | null {
    const first = this.head.offset === 0;
    if (first && line.type !== "log.checkpoint") return "the segment does not begin with a checkpoint";
    if (!this.isGrounded && line.type !== "log.checkpoint") return "the checkpoint is not whole";
    if (!first && line.prev !== this.head.sum) return "the chain is broken";
    if (!first && line.sequence !== this.head.sequence + 1) return "a sequence number is missing";
    return this.absorb(line, end);
  }

  /** Takes a whole line wherever it stands, for salvage. */
  absorb(line: Line, end: number): string | null {
    try {
      this.#apply(line, end);
    } catch (error) {
      if (error instanceof WireError) return `its content is not understood (${error.message})`;
      throw error;
    }
    this.head = { ...this.head, offset: end, sequence: line.sequence, sum: line.sum };
    this.newestMs = Math.max(this.newestMs, Date.parse(line.timestamp), askedAtMs(line));
    this.counted++;
    return null;
  }

  #apply(line: Line, end: number): void {
    if (line.type === "log.checkpoint") this.#applyCheckpoint(line, end);
    for (const [name, fact] of factsOf(line)) this.#say(name, fact);
    const event = claimEventOf(line);
    this.#remember(line, event);
    if (event === null) return;
    const endings = new Map<LeaseId, Ended>();
    applyTo({ leases: this.leases, endings }, event);
    const atMs = Date.parse(line.timestamp);
    for (const [id, ended] of endings) this.endings.set(id, { ended, atMs });
    for (const gone of event.ended) this.#touch(slotOf(gone), gone.fencingToken, null);
    for (const lease of event.leases) this.#touch(slotOf(lease), lease.fencingToken, lease);
    this.head = { ...this.head, nextToken: tokenAfter(this.head.nextToken, event) };
  }

  #remember(line: Line, event: ClaimEvent | null): void {
    const { request_id: requestId } = line.payload;
    if (typeof requestId === "string") this.requests.set(requestId, requestOf(line, requestId, event));
  }

  #say(name: FactName, fact: FactRecord | null): void {
    this.touchedFacts.set(name, fact);
    if (fact === null) this.facts.delete(name);
    else this.facts.set(name, fact);
  }

  #touch(slot: Slot, token: FencingToken, lease: Lease | null): void {
    this.touched.set(slot, lease);
    if (token > (this.tokens.get(slot) ?? 0)) this.tokens.set(slot, token);
  }

  /** A checkpoint may come in parts; together they are the whole view at the segment's start. */
  #applyCheckpoint(line: Line, end: number): void {
    const { payload } = line;
    for (const wire of list(payload, "leases")) {
      const lease = leaseFromWire(wire);
      this.leases.set(slotOf(lease), lease);
      this.#touch(slotOf(lease), lease.fencingToken, lease);
    }
    for (const wire of list(payload, "endings")) {
      const ended = endedFromWire(wire);
      this.endings.set(ended.leaseId, { ended, atMs: timeMs(object(wire), "ended_at") });
    }
    for (const [name, fact] of factsFromWire(payload)) this.#say(name, fact);
    for (const wire of list(payload, "requests")) {
      const record = requestFromWire(wire);
      this.requests.set(record.requestId, record);
    }
    const nextToken = fencingToken(Math.max(this.head.nextToken, count(payload, "next_token")));
    this.head = { ...this.head, segment: count(payload, "segment"), nextToken, checkpointEnd: end };
    this.isGrounded = count(payload, "part") === count(payload, "parts");
  }
}

/** When the operation got its id, as far as the line tells. */
function askedAtMs({ payload }: Line): number {
  const id = ulidIn(payload["request_id"] ?? payload["operation_id"]);
  // A name that was made up may be of a time that nothing can be written under.
  return id === null ? 0 : Math.min(ulidTimeMs(id), LATEST_MS);
}

/** What a line with a request id, or an operation id, came to. */
export function requestOf(line: Line, requestId: string, event: ClaimEvent | null): RequestRecord {
  const { type, timestamp, actor, payload } = line;
  return {
    requestId,
    // What one agent began and did not live to write down, another writes down for it.
    agentId: textOrNull(payload, "on_behalf_of") ?? actor.agentId,
    type,
    timestamp,
    leases: event?.leases ?? [],
    ended: event?.ended ?? [],
    about: textOrNull(payload, "about"),
    result: objectOrNull(payload, "result"),
  };
}

export function requestFromWire(value: unknown): RequestRecord {
  const w = object(value);
  return {
    requestId: text(w, "request_id"),
    agentId: text(w, "agent_id"),
    type: text(w, "event_type"),
    timestamp: text(w, "timestamp"),
    leases: list(w, "leases").map(leaseFromWire),
    ended: list(w, "ended").map(endedFromWire),
    about: textOrNull(w, "about"),
    result: objectOrNull(w, "result"),
  };
}

/** Whether a request id made at that time must be kept. */
export function isRemembered(requestId: string, nowMs: number): boolean {
  const ulid = ulidIn(requestId);
  return ulid !== null && ulidTimeMs(ulid) > nowMs - MEMORY_MS - MARGIN_MS;
}

const CHUNK = 1 << 20;

/** Calls `visit` for every newline-ended stretch of `[from, to)`; answers where the last whole one ended. */
export async function eachLine(
  files: Files,
  fd: Descriptor,
  from: number,
  to: number,
  visit: (lineText: string, offset: number, end: number) => void,
): Promise<number> {
  // A byte order mark is no part of a line of ours: it must show in the sum, and not be passed over.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let pending: Uint8Array = new Uint8Array(0);
  let start = from;
  let at = from;
  while (at < to) {
    const chunk = await files.read(fd, at, Math.min(CHUNK, to - at));
    if (chunk.length === 0) break;
    at += chunk.length;
    const bytes = pending.length === 0 ? chunk : concat(pending, chunk);
    let lineStart = 0;
    for (let nl = bytes.indexOf(10); nl !== -1; nl = bytes.indexOf(10, lineStart)) {
      const end = start + (nl - lineStart) + 1;
      visit(decoder.decode(bytes.subarray(lineStart, nl)), start, end);
      start = end;
      lineStart = nl + 1;
    }
    pending = bytes.slice(lineStart);
  }
  return start;
}

/**
 * Reads `[replay.head.offset, to)`. With `salvage`, whole lines after damage count as well (`recover`, and
 * readers of a log that needs it); without, they only tell how far things were known to be durable.
 */
export async function replayLog(
  files: Files,
  digest: Digest,
  fd: Descriptor,
  to: number,
  replay: Replay,
  salvage = false,
): Promise<Replay> {
  const whole = await eachLine(files, fd, replay.head.offset, to, (lineText, offset, end) => {
    const line = decodeLine(digest, lineText);
    if (line === null) refuseNewerText(lineText, "the log");
    else {
      refuseNewer(line.schemaVersion, "the log");
      replay.highestSynced = Math.max(replay.highestSynced, line.synced);
    }
    const salvaged = () => {
      const isTaken = line !== null && replay.absorb(line, end) === null;
      if (!isTaken) replay.mention(lineText);
    };
    if (replay.damage !== null) {
      if (salvage) salvaged();
      return;
    }
    const why = line === null ? "a line is torn or altered" : replay.take(line, end);
    if (why === null) return;
    replay.damage = damageAt(replay, offset, why, true);
    if (salvage) salvaged();
  });
  if (whole < to) replay.damage ??= damageAt(replay, whole, "the last line is torn");
  return replay;
}

function damageAt({ head, isGrounded }: Replay, offset: number, why: string, isWholeLine = false): Damage {
  return { offset, sequence: head.sequence + 1, why, inCheckpoint: !isGrounded, isWholeLine };
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  const joined = new Uint8Array(a.length + b.length);
  joined.set(a);
  joined.set(b, a.length);
  return joined;
}
