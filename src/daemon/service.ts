import type * as v from "valibot";
import type { Change, Coordinator, LoggedEvent, Subscription } from "../coordinator/contract";
import { LocalCoordinator } from "../coordinator/local";
import type { Actor } from "../kernel/commands";
import type { LeaseId, Ulid } from "../kernel/ids";
import type { Policy } from "../kernel/policy";
import type { Store } from "../store/store";
import { TooLate } from "../store/submission";
import type { Feed } from "./feed";
import { isSameSecret } from "./guard-http";
import { PROTOCOL } from "./place";
import * as schemas from "./requests";
import { paramsOf } from "./requests";
import { RPC_ERRORS, RpcError, type RpcRequest } from "./rpc";
import type { Conversation, Handler, Peer } from "./server";
import { toWire } from "./wire";

/** What a daemon lets its clients ask for. */
export interface ServiceParts {
  readonly store: Store;
  readonly token: string;
  readonly version: string;
  readonly build: string;
  readonly clockId: string;
  readonly feed: Feed;
  /** Whether the repository is still the one that its clients mean. */
  isHere(): boolean;
  /** The engine for clients whose claims go through this ledger; null for those of another one. */
  engineFor(ledger: string | null, policy: Policy): Promise<Coordinator | null>;
  /** For those who only look, whatever they go by. */
  reader(): Promise<Coordinator>;
  /** A session has shown that it is alive. */
  seen(actor: Actor): void;
  /** Requests that are no operations of the coordinator. */
  readonly others: ReadonlyMap<string, (params: unknown) => Promise<unknown>>;
  /** A client of another build has come. */
  onOtherBuild(build: string): void;
}

export class Service implements Handler {
  readonly #followers = new Set<Client>();

  constructor(private readonly parts: ServiceParts) {}

  /** Clients that are told every event. */
  get followers(): number {
    return this.#followers.size;
  }

  connected(peer: Peer): Conversation {
    return new Client(this.parts, peer, this.#followers);
  }
}

type Method = (params: unknown, client: Client) => Promise<unknown>;

let turn: Promise<void> | null = null;

/**
 * Every socket is read in a callback of its own. What they brought in one turn of the event loop goes to the store together, and
 * shares a critical section and a sync; otherwise each request would have its own.
 */
function sameTurn(): Promise<void> {
  turn ??= new Promise((resolve) => {
    setImmediate(() => {
      turn = null;
      resolve();
    });
  });
  return turn;
}

/** A method that changes something, by the schema of its request. */
function acting<S extends v.GenericSchema<unknown, { readonly actor: Actor }>>(
  schema: S,
  run: (coordinator: Coordinator, request: v.InferOutput<S>, client: Client) => Promise<Change>,
): Method {
  return async (params, client) => {
    // Whoever may not ask is not told what else is wrong.
    const coordinator = await client.coordinator();
    const request = paramsOf(schema, params);
    client.seen(request.actor);
    await sameTurn();
    return run(coordinator, request, client);
  };
}

/** One that only looks. */
function asking<S extends v.GenericSchema>(
  schema: S,
  run: (coordinator: Coordinator, request: v.InferOutput<S>) => Promise<object>,
): Method {
  return async (params, client) => run(await client.reader(), paramsOf(schema, params));
}

/** Leases that a connection is told of when they are lost, at most. */
const MOST_FOLLOWED = 10_000;

class Client implements Conversation {
  readonly #subscriptions: Subscription[] = [];
  readonly #granted = new Set<string>();
  #isKnown = false;
  #isOneOfUs = false;
  /** What a client of the same build goes by; null for everybody else. */
  #terms: { readonly policy: Policy; readonly ledger: string | null } | null = null;
  /** Operations that whoever asked may still give up, by their names. */
  readonly #interruptible = new Map<Ulid, AbortController>();
  #losses: Promise<void> | null = null;
  #isClosed = false;

  constructor(
    private readonly parts: ServiceParts,
    private readonly peer: Peer,
    private readonly followers: Set<Client>,
  ) {}

  async answer({ method, params }: RpcRequest): Promise<unknown> {
    // Up to here nothing is awaited: what comes in the same write as the greeting finds it done.
    if (method === "hello") return this.#greet(params);
    if (!this.#isKnown) throw new RpcError(RPC_ERRORS.stranger, "say hello first, with the token");
    const run = METHODS.get(method);
    if (run !== undefined && !this.parts.isHere())
      throw new RpcError(RPC_ERRORS.notHere, "the repository was moved: ask without this daemon");
    if (run !== undefined) return toWire(await this.#timely(() => run(params, this)));
    const other = this.parts.others.get(method);
    if (other === undefined) throw new RpcError(RPC_ERRORS.unknownMethod, `there is no method "${method}"`);
    return other(params);
  }

  closed(): void {
    for (const subscription of this.#subscriptions.splice(0)) subscription.close();
    this.#granted.clear();
    this.followers.delete(this);
    this.#isClosed = true;
  }

  async coordinator(): Promise<Coordinator> {
    const coordinator = await this.#engine();
    if (coordinator === null)
      throw new RpcError(
        RPC_ERRORS.notHere,
        this.#isOneOfUs
          ? "you go by other settings than this daemon: ask without it"
          : "only for programs of the daemon's own build: use 'claim', or the command line",
      );
    return coordinator;
  }

  async reader(): Promise<Coordinator> {
    return (await this.#engine()) ?? this.parts.reader();
  }

  /** As the settings are now: also somebody who stays connected for hours asks the remote that the clone has by then. */
  async #engine(): Promise<Coordinator | null> {
    return this.#terms === null ? null : this.parts.engineFor(this.#terms.ledger, this.#terms.policy);
  }

  /** For as long as it takes, `interrupt` may end it. */
  async interruptibly<T>(operation: Ulid | undefined, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    if (operation === undefined) return run(controller.signal);
    this.#interruptible.set(operation, controller);
    try {
      return await run(controller.signal);
    } finally {
      this.#interruptible.delete(operation);
    }
  }

  interrupt(operation: Ulid): void {
    this.#interruptible.get(operation)?.abort();
  }

  /** Whoever changes something is alive. */
  seen(actor: Actor): void {
    this.parts.seen(actor);
  }

  /** From now on the client hears when one of these leases ends by somebody else's hand. */
  async followLosses(ids: readonly LeaseId[]): Promise<void> {
    this.#losses ??= this.subscribe((event) => this.#tellLosses(event));
    await this.#losses;
    for (const id of ids) if (this.#granted.size < MOST_FOLLOWED) this.#granted.add(id);
  }

  async subscribe(listener: (event: LoggedEvent) => void, after?: number): Promise<void> {
    const subscription = await this.parts.feed.subscribe(listener, after);
    // Who went away meanwhile is told nothing, and keeps nobody reading.
    if (this.#isClosed) subscription.close();
    else this.#subscriptions.push(subscription);
  }

  /** Every event from now on, or after that line. */
  async follow(after: number | undefined): Promise<void> {
    await this.subscribe((event) => this.tell("event", toWire(event) as object), after);
    if (!this.#isClosed) this.followers.add(this);
  }

  tell(method: string, params: object): void {
    this.peer.tell(method, params);
  }

  async #greet(params: unknown): Promise<object> {
    const { token, protocol, build, clockId, policy, ledger } = paramsOf(schemas.HELLO, params);
    const parts = this.parts;
    if (!isSameSecret(token, parts.token)) throw new RpcError(RPC_ERRORS.stranger, "this is not the token");
    this.#isKnown = true;
    this.peer.admit();
    if (build !== parts.build) parts.onOtherBuild(build);
    this.#isOneOfUs = protocol === PROTOCOL && build === parts.build && clockId === parts.clockId;
    if (this.#isOneOfUs && policy !== undefined) this.#terms = { policy, ledger: ledger ?? null };
    const { version } = parts;
    return { protocol: PROTOCOL, version, build: parts.build, is_engine: (await this.#engine()) !== null };
  }

  async #timely<T>(run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      if (error instanceof TooLate) throw new RpcError(RPC_ERRORS.tooLate, error.message);
      throw error;
    }
  }

  #tellLosses({ type, payload, actor }: LoggedEvent): void {
    const ended = (payload["ended"] ?? []) as { lease_id: string; key: string; cause: string }[];
    for (const { lease_id, key, cause } of ended) {
      if (!this.#granted.delete(lease_id) || cause === "released") continue;
      this.tell("lost", { lease_id, key, cause, by: actor.agentId, event_type: type });
    }
  }
}

const METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  [
    "acquire",
    acting(schemas.ACQUIRE, (coordinator, request, client) =>
      client.interruptibly(request.relay?.operationId, (interrupted) =>
        coordinator.acquire({ ...request, interrupted }),
      ),
    ),
  ],
  [
    "interrupt",
    async (params, client) => {
      client.interrupt(paramsOf(schemas.INTERRUPT, params).operationId);
      return {};
    },
  ],
  ["renew", acting(schemas.RENEW, (coordinator, request) => coordinator.renew(request))],
  ["heartbeat", acting(schemas.HOLDER, (coordinator, request) => coordinator.heartbeat(request))],
  ["release", acting(schemas.RELEASE, (coordinator, request) => coordinator.release(request))],
  ["transfer", acting(schemas.TRANSFER, (coordinator, request) => coordinator.transfer(request))],
  ["evict", acting(schemas.EVICT, (coordinator, request) => coordinator.evict(request))],
  ["stop", acting(schemas.STOP, (coordinator, request) => coordinator.stop(request))],
  ["upkeep", acting(schemas.STOP, (coordinator, request) => coordinator.upkeep(request))],
  [
    "held",
    asking(schemas.HELD, async (coordinator, request) => ({ leases: await coordinator.held(request) })),
  ],
  ["list", asking(schemas.LIST, async (coordinator, filter) => ({ leases: await coordinator.list(filter) }))],
  ["find", asking(schemas.REFS, async (coordinator, { refs }) => ({ leases: await coordinator.find(refs) }))],
  [
    "overlapping",
    asking(schemas.OVERLAPPING, async (coordinator, { extents }) => ({
      leases: await coordinator.overlapping(extents),
    })),
  ],
  [
    "endings",
    asking(schemas.REFS, async (coordinator, { refs }) => ({ endings: await coordinator.endings(refs) })),
  ],
  ["waiters", asking(schemas.NOTHING, async (coordinator) => ({ tickets: await coordinator.waiters() }))],
  [
    "highest_token",
    asking(schemas.NOTHING, async (coordinator) => ({ token: await coordinator.highestToken() })),
  ],
  [
    "watch",
    async (params, client) => {
      const { after } = paramsOf(schemas.WATCH, params);
      await client.follow(after);
      return {};
    },
  ],
  [
    "follow_losses",
    async (params, client) => {
      const { refs } = paramsOf(schemas.REFS, params);
      await client.followLosses(refs.flatMap(({ leaseId }) => leaseId ?? []));
      return {};
    },
  ],
  ["ping", async () => ({})],
]);

/** The plain engine of a client: the same store, the client's own policy. */
export function localEngine(store: Store, policy: Policy): LocalCoordinator {
  return new LocalCoordinator(store, policy);
}
