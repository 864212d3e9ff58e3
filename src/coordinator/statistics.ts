import type { LoggedEvent } from "./contract";

/** How often things happened. */
export interface Tally {
  acquired: number;
  /** Of those, the grants that had stood in the queue. */
  waited: number;
  renewed: number;
  heartbeats: number;
  released: number;
  /** Ended by the clock. */
  expired: number;
  /** Ended because its process died. */
  dead: number;
  /** Ended because its session had stopped. */
  stop_idle: number;
  /** Live leases that somebody ended without taking them. */
  evicted: number;
  /** Live leases that somebody took. */
  stolen: number;
  /** Lapsed leases that somebody took. */
  taken_over: number;
  transferred: number;
}

export type Counted = keyof Tally;

function emptyTally(): Tally {
  return {
    acquired: 0,
    waited: 0,
    renewed: 0,
    heartbeats: 0,
    released: 0,
    expired: 0,
    dead: 0,
    stop_idle: 0,
    evicted: 0,
    stolen: 0,
    taken_over: 0,
    transferred: 0,
  };
}

/** What is known of one key. */
export interface KeyFigures {
  readonly tally: Tally;
  readonly holdsMs: number[];
  readonly waitsMs: number[];
  readonly agents: Set<string>;
  /** How often it went from one agent to another one. */
  changedHands: number;
  lastAgent: string | null;
}

interface Open {
  readonly acquiredMs: number;
  expiresMs: number;
}

type Wire = Readonly<Record<string, unknown>>;

/** Adds up a stretch of the log, one event at a time; it keeps figures and open leases, never the events. */
export class Statistics {
  readonly totals: Tally = emptyTally();
  readonly kinds = new Map<string, Tally>();
  readonly agents = new Map<string, Tally>();
  readonly keys = new Map<string, KeyFigures>();
  readonly holdsMs: number[] = [];
  readonly waitsMs: number[] = [];
  readonly overTime = new Timeline();
  events = 0;
  /** Commits that were made around the hooks. */
  violations = 0;
  first: { readonly sequence: number; readonly timestamp: string } | null = null;
  last: { readonly sequence: number; readonly timestamp: string } | null = null;
  readonly #open = new Map<string, Open>();

  /** What was held before the stretch begins is known from a checkpoint, or from events that do not count. */
  prepare({ payload }: LoggedEvent): void {
    for (const gone of records(payload, "ended")) this.#open.delete(String(gone["lease_id"]));
    for (const lease of records(payload, "leases")) this.#note(lease);
  }

  take(event: LoggedEvent): void {
    if (event.type === "log.checkpoint") this.prepare(event);
    if (event.type === "policy.violated") this.violations++;
    if (!event.type.startsWith("claim.")) return;
    this.events++;
    const { sequence, timestamp } = event;
    this.first ??= { sequence, timestamp };
    this.last = { sequence, timestamp };
    const atMs = Date.parse(timestamp);
    for (const gone of records(event.payload, "ended")) this.#end(gone, atMs);
    for (const lease of records(event.payload, "leases")) this.#stand(lease, event, atMs);
  }

  #stand(lease: Wire, event: LoggedEvent, atMs: number): void {
    const isNew = !this.#open.has(String(lease["lease_id"]));
    this.#note(lease);
    const agent = String(lease["agent_id"]);
    const key = String(lease["key"]);
    if (event.type === "claim.acquired" && isNew) {
      const figures = this.#count("acquired", key, agent);
      if (figures.lastAgent !== null && figures.lastAgent !== agent) figures.changedHands++;
      figures.lastAgent = agent;
      figures.agents.add(agent);
      this.overTime.add(atMs);
      const waitedMs = event.payload["waited_ms"];
      if (typeof waitedMs !== "number") return;
      this.#count("waited", key, agent).waitsMs.push(waitedMs);
      this.waitsMs.push(waitedMs);
    } else if (event.type === "claim.transferred") {
      const figures = this.#figures(key);
      figures.changedHands++;
      figures.lastAgent = agent;
      figures.agents.add(agent);
    } else if (event.type === "claim.renewed" || event.type === "claim.acquired") {
      this.#count("renewed", key, agent);
    } else if (event.type === "claim.heartbeat") this.#count("heartbeats", key, agent);
  }

  #end(gone: Wire, atMs: number): void {
    const id = String(gone["lease_id"]);
    const key = String(gone["key"]);
    const agent = String(gone["agent_id"]);
    const cause = String(gone["cause"]);
    const figures = this.#count(countedAs(cause, gone["successor"] !== null), key, agent);
    if (LAPSED.has(cause) && gone["successor"] !== null) this.#count("taken_over", key, agent);
    const open = this.#open.get(id);
    this.#open.delete(id);
    if (open === undefined) return;
    // The clock ended it at its expiry, whenever somebody noticed.
    const endMs = cause === "expired" ? Math.min(atMs, open.expiresMs) : atMs;
    const heldMs = Math.max(0, endMs - open.acquiredMs);
    figures.holdsMs.push(heldMs);
    this.holdsMs.push(heldMs);
  }

  #note(lease: Wire): void {
    const id = String(lease["lease_id"]);
    const expiresAt = lease["expires_at"];
    const expiresMs = typeof expiresAt === "string" ? Date.parse(expiresAt) : Number.POSITIVE_INFINITY;
    const open = this.#open.get(id);
    if (open !== undefined) open.expiresMs = expiresMs;
    else this.#open.set(id, { acquiredMs: Date.parse(String(lease["acquired_at"])), expiresMs });
  }

  #count(what: Counted, key: string, agent: string): KeyFigures {
    const figures = this.#figures(key);
    this.totals[what]++;
    figures.tally[what]++;
    tallyOf(this.kinds, key.slice(0, key.indexOf(":")))[what]++;
    tallyOf(this.agents, agent)[what]++;
    return figures;
  }

  #figures(key: string): KeyFigures {
    let figures = this.keys.get(key);
    if (figures === undefined) {
      figures = {
        tally: emptyTally(),
        holdsMs: [],
        waitsMs: [],
        agents: new Set(),
        changedHands: 0,
        lastAgent: null,
      };
      this.keys.set(key, figures);
    }
    return figures;
  }
}

const LAPSED: ReadonlySet<string> = new Set(["expired", "dead", "stop_idle"]);

function countedAs(cause: string, isTaken: boolean): Counted {
  if (cause === "forced") return isTaken ? "stolen" : "evicted";
  if (cause === "released" || cause === "transferred") return cause;
  return LAPSED.has(cause) ? (cause as Counted) : "evicted";
}

function tallyOf(tallies: Map<string, Tally>, name: string): Tally {
  let tally = tallies.get(name);
  if (tally === undefined) {
    tally = emptyTally();
    tallies.set(name, tally);
  }
  return tally;
}

function records(payload: Wire, name: string): readonly Wire[] {
  const list = payload[name];
  return Array.isArray(list) ? (list as readonly Wire[]) : [];
}

const MOST_BUCKETS = 60;

/** Counts per stretch of time. The stretches grow with the whole, so that there are never many. */
export class Timeline {
  readonly counts: number[] = [];
  bucketMs = 1_000;
  #startMs: number | null = null;

  get startMs(): number | null {
    return this.#startMs;
  }

  add(atMs: number): void {
    if (!Number.isFinite(atMs)) return;
    this.#startMs ??= atMs - (atMs % 1_000);
    // A clock that was set back puts its events into the first stretch.
    let at = Math.max(0, Math.floor((atMs - this.#startMs) / this.bucketMs));
    while (at >= MOST_BUCKETS) {
      this.#halve();
      at = Math.floor((atMs - this.#startMs) / this.bucketMs);
    }
    while (this.counts.length <= at) this.counts.push(0);
    this.counts[at]!++;
  }

  #halve(): void {
    const { counts } = this;
    for (let i = 0; 2 * i < counts.length; i++) counts[i] = counts[2 * i]! + (counts[2 * i + 1] ?? 0);
    counts.length = Math.ceil(counts.length / 2);
    this.bucketMs *= 2;
  }
}

export interface Spread {
  readonly count: number;
  readonly min: number;
  readonly median: number;
  readonly p95: number;
  readonly max: number;
}

/** Null when there is nothing to describe. */
export function spreadOf(values: readonly number[]): Spread | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)]!;
  return { count: sorted.length, min: sorted[0]!, median: at(0.5), p95: at(0.95), max: sorted.at(-1)! };
}
