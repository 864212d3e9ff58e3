import type * as contract from "../../../src/coordinator/contract";
import { CotenantError } from "../../../src/errors/cotenant-error";
import type { LeaseRef } from "../../../src/kernel/commands";
import { isPathKey, type LeaseKey } from "../../../src/kernel/keys";
import type { Ended, Lease, Reach } from "../../../src/kernel/lease";
import type { Answer, Ask, Caller, Extent, Name } from "./history";
import { nowMs, type Record, seenOf } from "./record";

/** An engine for one caller, with a record of every call: what a session asks of it, its own upkeep included. */
export class RecordingCoordinator implements contract.Coordinator {
  readonly #inner: contract.Coordinator;
  readonly #record: Record;
  readonly #caller: Caller;

  constructor(inner: contract.Coordinator, record: Record, caller: Caller) {
    this.#inner = inner;
    this.#record = record;
    this.#caller = caller;
  }

  acquire(request: contract.AcquireRequest): Promise<contract.Grant> {
    const { leaseIds: ids, ttlSecs, bind, steal } = request;
    const wants = this.#wants(request.keys);
    const ask = {
      do: "acquire",
      wants,
      ids,
      ttlMs: ttlSecs * 1000,
      bound: bind === "process",
      steal,
    } as const;
    return this.#change(ask, () => this.#inner.acquire(request));
  }

  async held(request: contract.HeldRequest): Promise<readonly Lease[] | null> {
    const calledMs = nowMs();
    const leases = await this.#inner.held(request);
    if (leases === null) return null;
    const wants = this.#wants(request.keys);
    const ask = { do: "acquire", wants, ids: [], ttlMs: 0, bound: false, steal: false } as const;
    const answer = { is: "done", leases: leases.map((lease) => seenOf(lease)), ended: [] } as const;
    this.#record.looked({ caller: this.#caller, calledMs, endedMs: nowMs(), ask, answer });
    return leases;
  }

  renew(request: contract.RenewRequest): Promise<contract.Change> {
    const ttlMs = request.ttlSecs === null ? null : request.ttlSecs * 1000;
    const ask = { do: "renew", names: namesOf(request.leases), extends: true, ttlMs } as const;
    return this.#change(ask, () => this.#inner.renew(request));
  }

  heartbeat(request: contract.HolderRequest): Promise<contract.Change> {
    return this.#change(tending(request.leases), () => this.#inner.heartbeat(request));
  }

  upkeep(request: contract.StopRequest): Promise<contract.Change> {
    return this.#change(tending(request.leases), () => this.#inner.upkeep(request));
  }

  release(request: contract.ReleaseRequest): Promise<contract.Change> {
    return this.#change({ do: "release", names: namesOf(request.leases) }, () =>
      this.#inner.release(request),
    );
  }

  transfer(request: contract.TransferRequest): Promise<contract.Change> {
    const { newLeaseId: id, toAgent, toWorktree, lease } = request;
    const [name] = namesOf([lease]);
    const ask = { do: "transfer", name: name!, id, toAgent, toWorktree } as const;
    return this.#change(ask, () => this.#inner.transfer(request));
  }

  evict(request: contract.EvictRequest): Promise<contract.Change> {
    return this.#change({ do: "evict", names: namesOf(request.leases) }, () => this.#inner.evict(request));
  }

  async list(): Promise<readonly contract.LeaseStatus[]> {
    return this.#look(null, () => this.#inner.list({ lapsed: true }));
  }

  find(refs: readonly LeaseRef[]): Promise<readonly contract.LeaseStatus[]> {
    return this.#look(namesOf(refs), () => this.#inner.find(refs));
  }

  endings(refs: readonly LeaseRef[]): Promise<readonly Ended[]> {
    return this.#inner.endings(refs);
  }

  waiters(): ReturnType<contract.Coordinator["waiters"]> {
    return this.#inner.waiters();
  }

  highestToken(): Promise<number> {
    return this.#inner.highestToken();
  }

  history(filter?: contract.HistoryFilter): AsyncIterable<contract.LoggedEvent> {
    return this.#inner.history(filter);
  }

  watch(listener: (event: contract.LoggedEvent) => void): Promise<contract.Subscription> {
    return this.#inner.watch(listener);
  }

  overlapping(): never {
    throw new Error("not part of a recorded history: it is asked by those who hold nothing");
  }

  facts(filter: contract.FactFilter): ReturnType<contract.Coordinator["facts"]> {
    return this.#inner.facts(filter);
  }

  factsSince(kind: string, position: string | null) {
    return this.#inner.factsSince(kind, position);
  }

  write(): never {
    throw new Error("not part of a recorded history: what it writes is no lease");
  }

  stop(): never {
    throw new Error("not part of a recorded history: stop-idle is not in the rules that it is checked by");
  }

  gc(): never {
    throw new Error("not part of a recorded history: a sweep is not one operation");
  }

  async #change<T extends contract.Change>(ask: Ask, act: () => Promise<T>): Promise<T> {
    const { n } = this.#record.called(this.#caller, ask);
    try {
      const change = await act();
      this.#record.answered(n, nowMs(), doneWith(change));
      return change;
    } catch (error) {
      this.#record.answered(n, nowMs(), refusalIn(error));
      throw error;
    }
  }

  async #look(
    names: readonly Name[] | null,
    act: () => Promise<readonly contract.LeaseStatus[]>,
  ): Promise<readonly contract.LeaseStatus[]> {
    const calledMs = nowMs();
    const found = await act();
    const leases = found.map(({ lease, standing }) => seenOf(lease, standing === "valid"));
    const answer = { is: "done", leases, ended: [] } as const;
    this.#record.looked({
      caller: this.#caller,
      calledMs,
      endedMs: nowMs(),
      ask: { do: "read", names },
      answer,
    });
    return found;
  }

  #wants(keys: readonly { readonly key: LeaseKey; readonly reach: Reach }[]): Extent[] {
    const { worktree } = this.#caller;
    return keys.map(({ key, reach }) => ({
      key,
      within: reach === "worktree" && isPathKey(key) ? worktree : null,
    }));
  }
}

function tending(leases: readonly LeaseRef[]): Ask {
  return { do: "renew", names: namesOf(leases), extends: false, ttlMs: null };
}

function namesOf(refs: readonly LeaseRef[]): Name[] {
  return refs.map(({ key, leaseId }) => {
    if (key === null) throw new Error("a recorded operation names its keys: they say what it has to do with");
    return { key, id: leaseId };
  });
}

function doneWith(change: contract.Change & Partial<contract.Grant>): Answer {
  const leases = change.leases.map((lease) => seenOf(lease));
  const ended = change.ended?.map(({ leaseId: id, how }) => ({ id, forced: how === "forced" }));
  // A transfer says it in the new lease.
  const stolen = change.leases.flatMap(({ stoleFrom }) =>
    stoleFrom.map(({ leaseId: id }) => ({ id, forced: false })),
  );
  return { is: "done", leases, ended: ended ?? stolen };
}

/** Anything but a refusal is trouble, and ends the worker. */
function refusalIn(error: unknown): Answer {
  if (!(error instanceof CotenantError)) throw error;
  const holders = (error.data["holders"] ?? []) as readonly { readonly lease_id: string }[];
  return { is: "refused", code: error.code, holders: holders.map(({ lease_id: id }) => id) };
}
