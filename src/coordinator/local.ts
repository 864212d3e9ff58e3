import { CotenantError, errorFrom, fileFailure } from "../errors/cotenant-error";
import type { Acquire, Command, LeaseRef } from "../kernel/commands";
import { type Extent, ExtentIndex } from "../kernel/conflicts";
import { type Circumstances, decide, standingOf } from "../kernel/decide";
import type { FactName, FactRecord } from "../kernel/facts";
import { NOBODYS_ID, type Ulid, ulidTimeMs } from "../kernel/ids";
import { kindOf, type LeaseKey } from "../kernel/keys";
import type { Ended, Lease, Slot } from "../kernel/lease";
import type { Policy } from "../kernel/policy";
import { isRefusal } from "../kernel/refusal";
import { upkeepDueInMs } from "../kernel/renewal";
import type { Ticket } from "../kernel/tickets";
import { type Now, remainingMs } from "../kernel/time";
import { isStale } from "../kernel/validity";
import { EMPTY_VIEW } from "../kernel/view";
import { newUlid } from "../platform/new-ulid";
import type { LogActor } from "../store/envelope";
import { factNews, factPosition } from "../store/fact-news";
import { EVERYTHING, livenessOf, type Needs, NOTHING, needsOf } from "../store/gather";
import type { Written } from "../store/guarded-write";
import type { Place } from "../store/queue-admission";
import type { Snapshot } from "../store/reader";
import { type Head, MEMORY_MS } from "../store/replay";
import type { Store } from "../store/store";
import type { Outcome, Submission } from "../store/submission";
import type {
  AcquireRequest,
  Change,
  Coordinator,
  EvictRequest,
  FactFilter,
  FactNews,
  GcRequest,
  Grant,
  HeldRequest,
  HistoryFilter,
  HolderRequest,
  LeaseStatus,
  ListFilter,
  LoggedEvent,
  Operation,
  ReleaseRequest,
  RenewRequest,
  StopRequest,
  Subscription,
  TransferRequest,
  WriteRequest,
} from "./contract";
import { readHistory, watchLog } from "./history";
import { lookAtQueue, whyWaiting } from "./queue-look";
import { waitForTurn } from "./waiting";

/** Every lease as it stands, and the log that says so. */
export interface Survey extends Pick<Snapshot, "head" | "damage"> {
  readonly leases: readonly LeaseStatus[];
}

/** Somebody in whose name a process that lives on does something, and who may leave before it is done. */
export interface Asker {
  readonly pid: number;
  /** PROTOCOL 28: what nobody waits for any more is not begun. */
  isWaiting(): boolean;
}

/** The engine that needs nothing but files under the Git directory. */
export class LocalCoordinator implements Coordinator {
  readonly #host: string;

  constructor(
    readonly store: Store,
    readonly policy: Policy,
    private readonly asker: Asker | null = null,
  ) {
    this.#host = store.platform.processes.host();
  }

  async acquire(request: AcquireRequest): Promise<Grant> {
    const command = this.#acquireCommand(request);
    const submit = (queue: Place | null) => this.#submit(command, request, queue);
    if (request.wait === null) return grant(accept(await submit(null)), 0);
    const actor = this.#logActor(request);
    const isNoticed = this.policy.escalateAfterSecs > 0;
    const notice = isNoticed ? (await import("./escalation")).noticing(this, request.actor) : null;
    const { outcome, waitedMs } = await waitForTurn(this.store, request.wait, {
      submit,
      look: async (mine, before) => {
        await notice?.(mine);
        return lookAtQueue(this.store, this.store.reader, this.policy, command, mine, before);
      },
      explain: (mine) => whyWaiting(this.store, this.store.reader, this.policy, command, mine),
      leave: (place) => this.store.leaveQueue(place, actor, this.policy),
    });
    return grant(accept(outcome), waitedMs);
  }

  async held(request: HeldRequest): Promise<readonly Lease[] | null> {
    const command = this.#acquireCommand({
      ...request,
      requestId: null,
      reason: null,
      note: null,
      secretHash: "",
      leaseIds: request.keys.map(() => NOBODYS_ID),
      steal: false,
      wait: null,
    });
    const needs = {
      ...needsOf(command, [], this.store.now(), this.policy),
      extents: [],
      // What is held is held, paused or not.
      facts: [],
      refs: request.keys.map(({ key }) => ({ key, leaseId: null })),
    };
    const snapshot = await this.store.reader.snapshot(needs);
    if (!snapshot.isSettled) return null;
    const decision = decide(
      { ...snapshot, nextToken: snapshot.head.nextToken },
      command,
      await this.#circumstances(snapshot),
    );
    if (isRefusal(decision) || decision.event !== null) return null;
    await this.store.confirm(snapshot.head, this.#logActor(request));
    return decision.leases;
  }

  async renew(request: RenewRequest): Promise<Change> {
    const { actor, leases, ttlSecs, overrideMax, reason, secretHash } = request;
    const proofs = this.#proofs(request.secrets);
    return this.#change(
      { kind: "renew", actor, leases, ttlSecs, overrideMax, reason, proofs, secretHash },
      request,
    );
  }

  async heartbeat(request: HolderRequest): Promise<Change> {
    const { actor, leases, secretHash } = request;
    return this.#change(
      { kind: "heartbeat", actor, leases, proofs: this.#proofs(request.secrets), secretHash },
      request,
    );
  }

  async release(request: ReleaseRequest): Promise<Change> {
    const { actor, leases, reason, secretHash } = request;
    return this.#change(
      { kind: "release", actor, leases, reason, proofs: this.#proofs(request.secrets), secretHash },
      request,
    );
  }

  async transfer(request: TransferRequest): Promise<Change> {
    const { secrets, requestId: _, relay: __, ...rest } = request;
    return this.#change({ kind: "transfer", ...rest, proofs: this.#proofs(secrets) }, request);
  }

  async evict(request: EvictRequest): Promise<Change> {
    const { requestId: _, relay: __, ...rest } = request;
    const command = { kind: "evict", isOverruled: false, isTakenBack: false, ...rest } as const;
    return this.#change(command, request);
  }

  async stop(request: StopRequest): Promise<Change> {
    const { actor, leases } = request;
    return this.#change({ kind: "stop", actor, leases, proofs: this.#proofs(request.secrets) }, request);
  }

  async upkeep(request: StopRequest): Promise<Change> {
    const { actor, leases } = request;
    return this.#change({ kind: "upkeep", actor, leases, proofs: this.#proofs(request.secrets) }, request);
  }

  write<T>(request: WriteRequest<T>): Promise<Written<T>> {
    const {
      actor,
      leases,
      secretHash,
      requestId,
      about,
      facts,
      factKinds,
      body,
      isOnlyLogged = false,
    } = request;
    const { clock, random } = this.store.platform;
    if (requestId !== null) checkRequestId(requestId, clock.wallMs());
    const proofs = this.#proofs(request.secrets);
    return this.store.write({
      actor: this.#logActor({ actor }),
      policy: this.policy,
      prove: leases.length === 0 ? null : { kind: "prove", actor, leases, proofs, secretHash },
      about,
      requestId,
      operationId: newUlid({ clock, random }),
      facts,
      factKinds: factKinds ?? [],
      isOnlyLogged,
      ...this.#awaited(),
      body,
    });
  }

  async facts({ names = [], kinds = [] }: FactFilter): Promise<ReadonlyMap<FactName, FactRecord>> {
    return (await this.store.reader.snapshot({ ...NOTHING, facts: names, factKinds: kinds })).facts;
  }

  /**
   * Which of these kinds of facts there are, at a glance: for whoever would otherwise read the store only to find that
   * nothing is there. Never a proof: a line that the index does not know yet is not seen.
   */
  async glance(kinds: readonly string[]): Promise<string[]> {
    const { files } = this.store.platform;
    const directory = `${this.store.layout.index}/facts`;
    const found: string[] = [];
    for (const kind of (await files.readDirectory(directory)) ?? [])
      if (kinds.includes(kind) && ((await files.readDirectory(`${directory}/${kind}`)) ?? []).length > 0)
        found.push(kind);
    return found;
  }

  async factsSince(kind: string, position: string | null): Promise<FactNews> {
    const { platform, layout } = this.store;
    const news = position === null ? null : await factNews(platform, layout, kind, position);
    if (news !== null) return { ...news, isAll: false };
    const { facts, head, damage } = await this.store.reader.snapshot({ ...NOTHING, factKinds: [kind] });
    const next = damage === null ? await factPosition(platform, layout, head) : null;
    return { facts, isAll: true, position: next, lines: 0 };
  }

  async gc(request: GcRequest): Promise<Change> {
    const swept: Lease[] = [];
    for (;;) {
      const change = await this.#change({ kind: "gc", actor: request.actor }, request);
      swept.push(...change.leases);
      if (!change.changed) break;
    }
    return { leases: swept, changed: swept.length > 0, replayed: false };
  }

  async list(filter: ListFilter = {}): Promise<readonly LeaseStatus[]> {
    const { kinds } = filter;
    const all = await this.#statuses(kinds === undefined ? EVERYTHING : { ...NOTHING, kinds });
    const wanted = (key: LeaseKey) =>
      kinds === undefined || (kinds as readonly string[]).includes(kindOf(key));
    return all.filter(
      ({ standing, lease }) => wanted(lease.key) && (filter.lapsed === true || standing === "valid"),
    );
  }

  async find(refs: readonly LeaseRef[]): Promise<readonly LeaseStatus[]> {
    const found = await this.#statuses({ ...EVERYTHING, everything: false, refs });
    const wanted = new Set(refs.map(({ key, leaseId }) => `${leaseId ?? ""} ${key ?? ""}`));
    return found.filter(({ lease: { key, leaseId } }) =>
      [`${leaseId} ${key}`, `${leaseId} `, ` ${key}`].some((name) => wanted.has(name)),
    );
  }

  /** Of one instant, and read once. */
  async survey(): Promise<Survey> {
    const snapshot = await this.snapshot();
    const { head, damage } = snapshot;
    return { head, damage, leases: await this.#statusesIn(snapshot) };
  }

  async overlapping(extents: readonly Extent[]): Promise<readonly LeaseStatus[]> {
    const found = await this.#statuses({ ...NOTHING, extents });
    const wanted = new ExtentIndex(extents);
    return found.filter(({ lease }) => wanted.conflictsWith(lease));
  }

  async endings(refs: readonly LeaseRef[]): Promise<readonly Ended[]> {
    const { endings } = await this.store.reader.snapshot({ ...EVERYTHING, everything: false, refs });
    return refs.flatMap(({ leaseId }) => (leaseId === null ? [] : (endings.get(leaseId) ?? [])));
  }

  async waiters(): Promise<readonly Ticket[]> {
    return this.#tickets(this.store.now());
  }

  async highestToken(): Promise<number> {
    return (await this.head()).nextToken - 1;
  }

  /** Where the log stands. */
  async head(): Promise<Head> {
    return (await this.store.reader.snapshot(NOTHING)).head;
  }

  history(filter: HistoryFilter = {}): AsyncIterable<LoggedEvent> {
    return readHistory(this.store.platform, this.store.layout, filter);
  }

  watch(listener: (event: LoggedEvent) => void, after?: number): Promise<Subscription> {
    return watchLog(this.store.platform, this.store.layout, listener, after);
  }

  // --- inside ---------------------------------------------------------------------------------------------

  #acquireCommand(request: AcquireRequest): Acquire {
    const { actor, keys, ttlSecs, bind, reason, note, secretHash, leaseIds, steal } = request;
    const { aboveToken = 0, elsewhere = [] } = request;
    const proofs = this.#proofs(request.secrets);
    return {
      ...(request.atMostSecs === undefined ? {} : { atMostSecs: request.atMostSecs }),
      ...(request.follows === undefined ? {} : { follows: request.follows }),
      kind: "acquire",
      actor,
      keys,
      ttlSecs,
      bind,
      reason,
      note,
      secretHash,
      proofs,
      leaseIds,
      steal,
      ticket: null,
      aboveToken,
      elsewhere,
    };
  }

  async #change(command: Command, asked: Asked): Promise<Change> {
    if (await this.#isNothingHere(command)) return { leases: [], changed: false, replayed: false };
    const outcome = accept(await this.#submit(command, asked, null));
    return { leases: outcome.leases, changed: outcome.changed, replayed: outcome.replayed };
  }

  /** Where there is no store there is nothing to change, and none is made to find that out. Throws what is refused then. */
  async #isNothingHere(command: Command): Promise<boolean> {
    if (await this.store.exists()) return false;
    const decision = decide(EMPTY_VIEW, command, await this.#circumstances({ leases: new Map() }));
    if (isRefusal(decision)) throw errorFrom(decision);
    return decision.event === null;
  }

  #submit(command: Command, asked: Asked, queue: Place | null): Promise<Outcome> {
    const { clock, random } = this.store.platform;
    const { requestId = null, relay } = asked;
    if (requestId !== null) checkRequestId(requestId, clock.wallMs());
    const submission: Submission = {
      command,
      policy: this.policy,
      actor: this.#logActor(asked),
      requestId,
      operationId: relay?.operationId ?? newUlid({ clock, random }),
      ...(relay?.isSecond === undefined ? {} : { isSecond: relay.isSecond }),
      ...(relay?.beforeMs === undefined ? {} : { beforeMs: relay.beforeMs }),
      ...this.#awaited(),
      queue,
    };
    return this.store.submit(submission);
  }

  async #tickets(now: Now): Promise<Ticket[]> {
    try {
      return (await this.store.queue.load(now)).live;
    } catch (error) {
      throw fileFailure(error, "reading the queue", this.store.layout.queue);
    }
  }

  async #statuses(needs: Needs): Promise<LeaseStatus[]> {
    return this.#statusesIn(await this.store.reader.snapshot(needs));
  }

  async #statusesIn(snapshot: Snapshot): Promise<LeaseStatus[]> {
    const at = await this.#circumstances(snapshot);
    return [...snapshot.leases.values()].map((lease) => ({
      lease,
      standing: standingOf(lease, at),
      stale: isStale(lease, at.now, this.policy),
      remainingMs: lease.expiresAt === null ? null : remainingMs(lease.expiresAt, at.now),
      upkeepDueInMs: upkeepDueInMs(lease, at.now, this.policy),
    }));
  }

  async #circumstances(snapshot: { leases: ReadonlyMap<Slot, Lease> }): Promise<Circumstances> {
    const liveness = await livenessOf(this.store.platform, snapshot.leases.values());
    return { now: this.store.now(), policy: this.policy, liveness, tickets: [] };
  }

  snapshot(): Promise<Snapshot> {
    return this.store.reader.snapshot(EVERYTHING);
  }

  #proofs(secrets: readonly string[]): string[] {
    return [...new Set(secrets)].map((secret) => this.store.platform.digest.sha256(secret));
  }

  #logActor({ actor, relay }: Pick<Asked, "actor" | "relay">): LogActor {
    const { agentId, sessionId, worktreeId } = actor;
    const pid = relay?.pid ?? this.asker?.pid ?? this.store.platform.processes.self().pid;
    return { agentId, sessionId, worktreeId, host: this.#host, pid };
  }

  #awaited(): Pick<Submission, "isAwaited"> {
    const asker = this.asker;
    return asker === null ? {} : { isAwaited: () => asker.isWaiting() };
  }
}

/** What all requests have in common. */
type Asked = Pick<Operation, "actor" | "relay"> & Partial<Pick<Operation, "requestId">>;

function accept(outcome: Outcome): Extract<Outcome, { done: true }> {
  if (!outcome.done) throw errorFrom(outcome.refusal);
  return outcome;
}

function grant(outcome: Extract<Outcome, { done: true }>, waitedMs: number): Grant {
  const { leases, changed, replayed, ended } = outcome;
  return { leases, changed, replayed, ended, waitedMs };
}

/** A clock that jumped forward and back must not make a retry run twice. */
const MOST_AHEAD_MS = 3_600_000;

/** PROTOCOL 8: an id too old to be remembered is refused, never executed again. */
export function checkRequestId(requestId: Ulid, nowMs: number): void {
  const age = nowMs - ulidTimeMs(requestId);
  if (age < MEMORY_MS && age > -MOST_AHEAD_MS) return;
  const why = age > 0 ? "is older than can be remembered (24 h)" : "is more than an hour ahead of this clock";
  throw new CotenantError("E_LIMIT", `request id ${requestId} ${why}`, {
    hint: "look at what the first call did ('cotenant status'), and make a new id for a new operation",
    data: { request_id: requestId },
  });
}
