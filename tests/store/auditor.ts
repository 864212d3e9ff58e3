import { conflict } from "../../src/kernel/conflicts";
import type { LeaseId, Ulid } from "../../src/kernel/ids";
import { type Lease, type Slot, sameParty } from "../../src/kernel/lease";
import { applyTo, type ClaimEvent } from "../../src/kernel/view";
import { claimEventOf, decodeLine, type Line } from "../../src/store/envelope";
import type { SimWorld } from "../../testing/simulator";
import { simCompression } from "../../testing/simulator/compression";
import { CONTROL, decode, LOG, openParty, sha256 } from "./stage";

/** What somebody was told, and when: steps of the world before the call and after its answer. */
export interface Acknowledged {
  readonly what: string;
  readonly began: number;
  readonly ended: number;
  /** Of one of these kinds. None when nothing had to be written for it. */
  readonly events: readonly string[];
  readonly leases: readonly Lease[];
  readonly requestId: Ulid | null;
}

const digest = { sha256 };

/**
 * Checks the promises of docs/GUARANTEES.md from outside: by what is on the disk, and by what callers were told. Promise 1
 * (exclusion), 2 (tokens), 4 (acknowledged means durable), 5 (the index is a function of the log), 7 (all or
 * nothing), 8 (request ids), 10 (total order, no secrets).
 */
export class Auditor {
  readonly acknowledged: Acknowledged[] = [];
  /** Lease ids that were asked for in one operation. */
  readonly groups: (readonly LeaseId[])[] = [];
  readonly #world: SimWorld;
  readonly #decoded = new Map<string, Line | null>();
  #state = freshState();

  constructor(world: SimWorld) {
    this.#world = world;
  }

  /** Promise 1, of leases that somebody saw at once. */
  static checkExclusion(leases: readonly Lease[]): void {
    for (const [i, a] of leases.entries()) {
      for (const b of leases.slice(i + 1)) {
        if (!sameParty(a, b) && conflict(a, b))
          fail(`${a.agentId} has ${a.key} beside ${b.agentId}'s ${b.key}`);
      }
    }
  }

  /** Steps that the world has taken: its clock, for what came before what. */
  get now(): number {
    return this.#world.trace.step;
  }

  /** Runs the call and notes what it was answered, unless its process died first or it was refused. */
  async told<T extends { leases: readonly Lease[]; changed: boolean }>(
    what: string,
    events: readonly string[],
    call: () => Promise<T>,
    requestId: Ulid | null = null,
  ): Promise<T> {
    const began = this.now;
    const answer = await call();
    const { leases, changed } = answer;
    this.acknowledged.push({
      what,
      began,
      ended: this.now,
      events: changed ? events : [],
      leases,
      requestId,
    });
    return answer;
  }

  /** Everything but the index; of the disk as it is now. */
  audit(): void {
    const lines = this.#lines();
    const { state } = this.#resumed(lines);
    for (const line of lines.slice(state.count)) this.#take(state, line);
    this.#state = state;
    for (const ack of this.acknowledged) this.#checkAcknowledged(state, ack);
    this.#checkOrder(state);
  }

  /** That readers see what the log says, with the index and without it; and that no secret is about. */
  async auditIndex(): Promise<void> {
    this.#checkSecrets();
    const expected = new Map([...this.#state.leases].map(([slot, lease]) => [slot, lease.leaseId]));
    for (const without of [false, true]) {
      if (without) this.#loseIndex();
      const reader = this.#world.spawn("auditor", async (platform) => {
        const { leases, damage } = await openParty(platform, "agent:auditor").coordinator.snapshot();
        if (damage !== null) fail(`damage in a whole log: ${damage.why}`);
        return new Map([...leases].map(([slot, lease]) => [slot, lease.leaseId]));
      });
      await this.#world.run();
      const [seen, said] = [sorted(reader.result!), sorted(expected)].map((leases) => JSON.stringify(leases));
      if (seen !== said)
        fail(`index ${without ? "lost" : "kept"}: readers see ${seen}, the log says ${said}`);
    }
  }

  #resumed(lines: readonly Line[]): { state: State } {
    const { count, lastSum } = this.#state;
    const isSame = count > 0 && lines[count - 1]?.sum === lastSum;
    return { state: isSame ? this.#state : freshState() };
  }

  #take(state: State, line: Line): void {
    const where = `line ${line.sequence}`;
    // Promise 10: one order, nothing missing. Each segment starts where the one before it ended.
    if (state.count > 0 && line.sequence !== state.sequence + 1) fail(`${where} after ${state.sequence}`);
    if (state.count > 0 && line.prev !== state.lastSum) fail(`${where}: the chain is broken`);
    state.sequence = line.sequence;
    state.lastSum = line.sum;
    state.count++;
    const event = claimEventOf(line);
    if (event === null) return;
    this.#checkGrants(state, event, where);
    const before = new Set([...state.leases.values()].map((lease) => lease.leaseId));
    applyTo({ leases: state.leases, endings: new Map() }, event);
    this.#checkExclusion(state, event, where);
    this.#checkGroups(event, before, where);
    const { request_id: requestId } = line.payload;
    if (typeof requestId === "string") {
      if (state.requests.has(requestId)) fail(`${where}: request ${requestId} was done twice`);
      state.requests.add(requestId);
    }
    for (const id of [...event.leases, ...event.ended].map(({ leaseId }) => leaseId)) {
      const about = state.events.get(id) ?? [];
      about.push({ sequence: line.sequence, event });
      state.events.set(id, about);
    }
  }

  /** Promise 2: each new lease's token is above every one before it. */
  #checkGrants(state: State, event: ClaimEvent, where: string): void {
    const known = new Set([...state.leases.values()].map((lease) => lease.leaseId));
    for (const lease of event.leases) {
      if (known.has(lease.leaseId)) continue;
      if (lease.fencingToken <= state.token) fail(`${where}: token of ${lease.key} after ${state.token}`);
      state.token = lease.fencingToken;
    }
  }

  /** Promise 1, and more: a grant ends what it replaces, so no two holders' leases conflict, valid or not. */
  #checkExclusion(state: State, event: ClaimEvent, where: string): void {
    for (const lease of event.leases) {
      for (const other of state.leases.values()) {
        if (other.leaseId === lease.leaseId || sameParty(other, lease) || !conflict(other, lease)) continue;
        fail(`${where}: ${lease.agentId} has ${lease.key} beside ${other.agentId}'s ${other.key}`);
      }
    }
  }

  /** Promise 7. */
  #checkGroups(event: ClaimEvent, before: ReadonlySet<LeaseId>, where: string): void {
    const granted = new Set(event.leases.map(({ leaseId }) => leaseId).filter((id) => !before.has(id)));
    for (const group of this.groups) {
      const taken = group.filter((id) => granted.has(id)).length;
      if (taken > 0 && taken < group.length)
        fail(`${where}: ${taken} of ${group.length} keys of one operation`);
    }
  }

  /** Promise 4: what somebody was told is in the log. */
  #checkAcknowledged(state: State, ack: Acknowledged): void {
    for (const lease of ack.leases) {
      const events = state.events.get(lease.leaseId) ?? [];
      if (events.length === 0) fail(`acknowledged and lost: ${ack.what}`);
      if (ack.events.length === 0) continue;
      const isThere = events.some(({ event }) => ack.events.includes(event.type));
      if (!isThere) fail(`acknowledged and lost: ${ack.what} (${ack.events} of ${lease.key})`);
    }
    if (ack.requestId !== null && ack.events.length > 0 && !state.requests.has(ack.requestId))
      fail(`acknowledged and lost: ${ack.what}, request ${ack.requestId}`);
  }

  /** What was answered before something else was asked came before it. */
  #checkOrder(state: State): void {
    const times = new Map<LeaseId, number>();
    for (const { leaseId } of this.acknowledged.flatMap(({ leases }) => leases))
      times.set(leaseId, (times.get(leaseId) ?? 0) + 1);
    const dated = this.acknowledged.flatMap((ack) => {
      // A lease that was told of more than once does not say which line this answer was about.
      const lease = ack.leases.find(({ leaseId }) => times.get(leaseId) === 1);
      if (lease === undefined || ack.events.length === 0) return [];
      const all = state.events.get(lease.leaseId) ?? [];
      const found = all.filter(({ event }) => ack.events.includes(event.type));
      return found.length === 1 ? [{ ack, sequence: found[0]!.sequence }] : [];
    });
    dated.sort((a, b) => a.sequence - b.sequence);
    let latestBegan = 0;
    for (const { ack, sequence } of dated) {
      if (ack.ended <= latestBegan)
        fail(`line ${sequence}, ${ack.what}: answered before an earlier line was asked for`);
      latestBegan = Math.max(latestBegan, ack.began);
    }
  }

  /** Promise 10: no secret is anywhere but in the secrets' own files. */
  #checkSecrets(): void {
    const secrets = new Set<string>();
    const paths = this.#world.disk.paths().filter((path) => path.startsWith(CONTROL) && !path.endsWith("/"));
    for (const path of paths.filter((p) => p.startsWith(`${CONTROL}/secrets/`)))
      for (const [, secret] of (decode(this.#world.disk.peek(path)) ?? "").matchAll(/"secret":"([^"]+)"/g))
        secrets.add(secret!);
    for (const path of paths.filter((p) => !p.startsWith(`${CONTROL}/secrets/`))) {
      const content = decode(this.#world.disk.peek(path)) ?? "";
      for (const secret of secrets) if (content.includes(secret)) fail(`a secret is in ${path}`);
    }
  }

  /** Every line of the archive and the log, once, in order. */
  #lines(): Line[] {
    const { disk } = this.#world;
    const archived = disk.paths().filter((path) => /\/archive\/claims-\d{6}\.[^/]*jsonl(\.gz)?$/.test(path));
    const lines: Line[] = [];
    for (const path of [...archived, LOG]) {
      const bytes = disk.peek(path);
      const plain = path.endsWith(".gz") ? (simCompression.unpack(bytes!) as Uint8Array) : bytes;
      for (const text of (decode(plain) ?? "").split("\n")) {
        const line = this.#decode(text);
        if (line !== null && line.sequence > (lines.at(-1)?.sequence ?? 0)) lines.push(line);
      }
    }
    return lines;
  }

  #decode(text: string): Line | null {
    let line = this.#decoded.get(text);
    if (line === undefined) {
      line = decodeLine(digest, text);
      this.#decoded.set(text, line);
    }
    return line;
  }

  /** Without `applied` nobody takes the rest for an index. */
  #loseIndex(): void {
    this.#world.disk.install(`${CONTROL}/index/applied`, new Uint8Array(0));
  }
}

function fail(why: string): never {
  throw new Error(why);
}

interface State {
  count: number;
  sequence: number;
  lastSum: string;
  token: number;
  readonly leases: Map<Slot, Lease>;
  readonly requests: Set<string>;
  readonly events: Map<LeaseId, { sequence: number; event: ClaimEvent }[]>;
}

function freshState(): State {
  return {
    count: 0,
    sequence: 0,
    lastSum: "",
    token: 0,
    leases: new Map(),
    requests: new Set(),
    events: new Map(),
  };
}

function sorted(leases: ReadonlyMap<string, string>): [string, string][] {
  return [...leases].sort(([a], [b]) => (a < b ? -1 : 1));
}
