import type { Session } from "../../../src/coordinator/session";
import type { Workspace } from "../../../src/coordinator/workspace";
import { CotenantError, orThrow } from "../../../src/errors/cotenant-error";
import { type AgentId, parseAgentId } from "../../../src/kernel/ids";
import { isPathKey, type LeaseKey } from "../../../src/kernel/keys";
import type { Lease } from "../../../src/kernel/lease";
import type { Prng } from "../../../testing/simulator/prng";
import { guardedWrite } from "../../../testing/workload/guarded-write";
import type { Answer, Caller } from "./history";
import type { Orders } from "./orders";
import { nowMs, type Record } from "./record";

const LOOKS_PER_TURN = 2;
const REASON = "it is in the way";

/** One session at work: takes leases, uses them, gives them back, hands them on, looks, and tries what is not allowed. */
export class CallerAtWork {
  readonly #workspace: Workspace;
  readonly #session: Session;
  readonly #caller: Caller;
  readonly #record: Record;
  readonly #orders: Orders;
  readonly #chance: Prng;
  /** What it once had: every proof of it must fail. */
  #lost: Lease | null = null;

  constructor(
    workspace: Workspace,
    session: Session,
    caller: Caller,
    record: Record,
    orders: Orders,
    chance: Prng,
  ) {
    this.#workspace = workspace;
    this.#session = session;
    this.#caller = caller;
    this.#record = record;
    this.#orders = orders;
    this.#chance = chance;
  }

  /** One that only looks, and never rests: what it may not see lasts for microseconds. */
  async watch(): Promise<void> {
    for (let left = LOOKS_PER_TURN; left > 0; left--) {
      await this.#session.coordinator.list();
      // Reading never leaves the processor: the others in this process want to hear of their locks and timers.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async turn(): Promise<void> {
    const keys = this.#chance.pick(this.#orders.keys) as readonly LeaseKey[];
    const what = this.#chance.below(100);
    if (what < 12) await this.#look(keys);
    else if (what < 20 && this.#caller.agent.startsWith("human:")) await this.#overrule(keys);
    else await this.#work(keys);
    await this.#nap();
  }

  async #work(keys: readonly LeaseKey[]): Promise<void> {
    const chance = this.#chance;
    const leases = await this.#acquire(this.#some(keys), keys);
    if (leases === null) return;
    for (let left = chance.below(4); left > 0; left--) {
      await this.#nap();
      const lease = chance.pick(leases);
      const what = chance.below(100);
      if (what < 40) await this.#write(lease);
      else if (what < 65) await this.#try(() => this.#session.renew([refOf(lease)], KEEP));
      else if (what < 80) await this.#look([lease.key]);
      else if (what < 90) await this.#try(() => this.#session.heartbeat([refOf(lease)]));
      else await this.#acquire([lease.key], keys);
    }
    // What it came for.
    if (chance.chance(0.5)) await this.#write(chance.pick(leases));
    await this.#part(leases);
  }

  async #part(leases: readonly Lease[]): Promise<void> {
    const chance = this.#chance;
    const { leftShare, peers } = this.#orders;
    const [first] = leases;
    if (chance.chance(leftShare)) return;
    if (chance.chance(0.06) && peers.length > 0) {
      const toAgent = orThrow(parseAgentId(chance.pick(peers)));
      await this.#transfer(first!, toAgent);
      // The others, one by one: one that was lost must not keep the rest.
      for (const lease of leases.slice(1)) await this.#try(() => this.#session.release([refOf(lease)]));
    } else {
      await this.#try(() =>
        this.#session.release(leases.map((lease) => ({ key: lease.key, leaseId: null }))),
      );
    }
    if (chance.chance(0.3)) this.#lost = first!;
    if (this.#lost !== null && chance.chance(0.3)) await this.#useStale(this.#lost);
  }

  /** Something it has no more, in every way: the answer is always no, whoever holds the key by now. */
  async #useStale(lease: Lease): Promise<void> {
    const what = this.#chance.below(4);
    if (what === 0) await this.#write(lease);
    else if (what === 1)
      // By name alone, as people do it: what is on record decides which lease is meant, never who holds it now.
      await this.#try(() => this.#session.release([{ key: lease.key, leaseId: null }]));
    else if (what === 2) await this.#try(() => this.#session.renew([refOf(lease)], KEEP));
    else await this.#try(() => this.#session.release([refOf(lease)]));
  }

  async #acquire(
    keys: readonly LeaseKey[],
    group: readonly LeaseKey[],
    steal = false,
  ): Promise<readonly Lease[] | null> {
    const { ttlSecs, boundShare, waitShare, waitMs } = this.#orders;
    const chance = this.#chance;
    const reach =
      chance.chance(0.2) && keys.every(isPathKey) ? ("worktree" as const) : ("repository" as const);
    const options = {
      ttlSecs: chance.between(...ttlSecs),
      bind: chance.chance(boundShare) ? ("process" as const) : ("ttl" as const),
      reason: steal ? REASON : null,
      steal,
      wait: chance.chance(waitShare) ? { timeoutMs: chance.between(1, waitMs) } : null,
    };
    const asked = keys.filter((key) => group.includes(key)).map((key) => ({ key, reach }));
    return (await this.#try(() => this.#session.acquire(asked, options)))?.leases ?? null;
  }

  async #overrule(keys: readonly LeaseKey[]): Promise<void> {
    const key = this.#chance.pick(keys);
    if (this.#chance.chance(0.5)) {
      await this.#try(() => this.#session.evict([{ key, leaseId: null }], { reason: REASON }));
      return;
    }
    const leases = await this.#acquire([key], keys, true);
    if (leases !== null) await this.#try(() => this.#session.release(leases.map(refOf)));
  }

  #transfer(lease: Lease, toAgent: AgentId) {
    const { worktreeId: toWorktree } = this.#session.actor;
    const to = { toAgent, toWorktree, toBranch: null, reason: REASON };
    return this.#try(() => this.#session.transfer(refOf(lease), to));
  }

  async #look(keys: readonly LeaseKey[]): Promise<void> {
    if (this.#chance.chance(0.3)) await this.#session.coordinator.list();
    else await this.#session.coordinator.find(this.#some(keys).map((key) => ({ key, leaseId: null })));
  }

  /** The check and the write are one critical section. */
  async #write(lease: Lease): Promise<void> {
    const { key, leaseId, fencingToken: token } = lease;
    const calledMs = nowMs();
    const target = { lease: { key, leaseId, token }, things: [key] };
    const { witness } = this.#orders;
    let refusal: string | null;
    try {
      refusal = (await guardedWrite(this.#workspace, this.#session, "write", [target], witness)) && "E_STALE";
    } catch (error) {
      if (!(error instanceof CotenantError)) throw error;
      // Behind somebody who was stopped in the critical section: nothing was written.
      refusal = error.code;
    }
    const answer: Answer =
      refusal === null
        ? { is: "done", leases: [], ended: [] }
        : { is: "refused", code: refusal, holders: [] };
    const ask = { do: "write", name: { key, id: leaseId }, token } as const;
    this.#record.looked({ caller: this.#caller, calledMs, endedMs: nowMs(), ask, answer });
  }

  #some(keys: readonly LeaseKey[]): LeaseKey[] {
    const many = this.#chance.chance(0.25) ? this.#chance.between(2, 3) : 1;
    return this.#chance.shuffle([...keys]).slice(0, many);
  }

  /** Null when it was refused: that is in the record, and judged there. */
  async #try<T>(act: () => Promise<T>): Promise<T | null> {
    try {
      return await act();
    } catch (error) {
      if (error instanceof CotenantError) return null;
      throw error;
    }
  }

  async #nap(): Promise<void> {
    const ms = this.#chance.below(this.#orders.napMs + 1);
    if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
  }
}

const KEEP = { ttlSecs: null, overrideMax: false, reason: null };

function refOf({ key, leaseId }: Lease) {
  return { key, leaseId };
}
