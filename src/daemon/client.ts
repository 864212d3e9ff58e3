import type {
  AcquireRequest,
  Change,
  Coordinator,
  EvictRequest,
  Grant,
  HolderRequest,
  Relay,
  ReleaseRequest,
  RenewRequest,
  StopRequest,
  TransferRequest,
} from "../coordinator/contract";
import { ForwardingCoordinator } from "../coordinator/forwarding";
import type { Policy } from "../kernel/policy";
import { newUlid } from "../platform/new-ulid";
import type { Platform } from "../platform/platform";
import { connectTo, type DaemonConnection, NoAnswer } from "./connection";
import { LONGEST_FRAME } from "./frames";
import { type DaemonRecord, processOf } from "./place";
import { RPC_ERRORS, RpcError } from "./rpc";
import { fromWire, toWire } from "./wire";

/** How long the daemon has to begin, and to show that it is there: then the client goes on without it. */
const BEGIN_WITHIN_MS = 2_000;
/** How long an answer may take that was begun: a claim may have to ask another machine. */
const ANSWER_WITHIN_MS = 120_000;
/** When a daemon is asked again that did not answer; another one in its place is asked at once. */
const ASK_AGAIN_MS = 5_000;

export interface DaemonClientParts {
  readonly platform: Platform;
  /** What is asked where the daemon is not. */
  readonly direct: Coordinator;
  /** Where the daemon is; null where there is none now. */
  find(): DaemonRecord | null;
  readonly policy: Policy;
  readonly build: string;
  readonly ledger: string | null;
}

/**
 * The engine of a process that has a daemon to ask. What changes leases goes there; reads go to the files, which never wait; a
 * guarded write goes to the store, because its body runs here. When the daemon does not answer, everything goes on without
 * it, and nothing is done twice (PROTOCOL 28).
 */
export class DaemonCoordinator extends ForwardingCoordinator {
  #line: { readonly connection: DaemonConnection; readonly record: DaemonRecord } | null = null;
  /** The one that did not answer, and until when it is left alone. */
  #silent: { readonly record: DaemonRecord; readonly untilMs: number } | null = null;

  constructor(private readonly parts: DaemonClientParts) {
    super(parts.direct);
  }

  /** Who waits does so in the queue's own files, with the daemon or without. */
  override acquire(request: AcquireRequest): Promise<Grant> {
    if (request.wait !== null) return this.behind.acquire(request);
    const { interrupted, ...travelling } = request;
    const carryOut = (again: typeof travelling) =>
      this.behind.acquire(interrupted === undefined ? again : { ...again, interrupted });
    return this.#ask("acquire", travelling, carryOut, interrupted);
  }

  override renew(request: RenewRequest): Promise<Change> {
    return this.#ask("renew", request, (again) => this.behind.renew(again));
  }

  override heartbeat(request: HolderRequest): Promise<Change> {
    return this.#ask("heartbeat", request, (again) => this.behind.heartbeat(again));
  }

  override release(request: ReleaseRequest): Promise<Change> {
    return this.#ask("release", request, (again) => this.behind.release(again));
  }

  override transfer(request: TransferRequest): Promise<Change> {
    return this.#ask("transfer", request, (again) => this.behind.transfer(again));
  }

  override evict(request: EvictRequest): Promise<Change> {
    if (request.isOverruled === true) return this.behind.evict(request);
    return this.#ask("evict", request, (again) => this.behind.evict(again));
  }

  override stop(request: StopRequest): Promise<Change> {
    return this.#ask("stop", request, (again) => this.behind.stop(again));
  }

  override upkeep(request: StopRequest): Promise<Change> {
    return this.#ask("upkeep", request, (again) => this.behind.upkeep(again));
  }

  close(): void {
    this.#line?.connection.close();
  }

  // --- inside -----------------------------------------------------------------------------------------------

  /**
   * Through the daemon, or directly where it does not answer. Until `beforeMs` the daemon may still begin it, and so the client
   * waits that long before it does so itself; what the daemon had begun by then is found in the log by the operation's id.
   */
  async #ask<R extends object, A>(
    method: string,
    request: R,
    direct: (request: R) => Promise<A>,
    interrupted?: AbortSignal,
  ): Promise<A> {
    const { clock, random, processes } = this.parts.platform;
    const line = interrupted?.aborted === true ? null : this.#connected();
    if (line === null) return direct(request);
    const beforeMs = clock.monotonicMs() + BEGIN_WITHIN_MS;
    const relay: Relay = {
      operationId: newUlid({ clock, random }),
      beforeMs,
      pid: processes.self().pid,
    };
    const params = JSON.stringify(toWire({ ...request, relay }));
    if (params.length > LONGEST_FRAME / 2) return direct(request);
    const { connection } = line;
    // What comes of it is the answer to the operation itself.
    const giveUp = () =>
      void connection
        .call("interrupt", toWire({ operationId: relay.operationId }) as object, BEGIN_WITHIN_MS)
        .catch(() => {});
    interrupted?.addEventListener("abort", giveUp, { once: true });
    try {
      return fromWire(await connection.callPatiently(method, params, BEGIN_WITHIN_MS, ANSWER_WITHIN_MS)) as A;
    } catch (error) {
      if (error instanceof RpcError) return this.#afterRefusal(error, () => direct(request));
      if (!(error instanceof NoAnswer)) throw error;
      this.#leave();
      await this.#untilCertain(line.record, beforeMs);
      const { operationId } = relay;
      return direct({ ...request, relay: { operationId, isSecond: true } });
    } finally {
      interrupted?.removeEventListener("abort", giveUp);
    }
  }

  /** The daemon has said that it did not begin. */
  async #afterRefusal<A>(error: RpcError, direct: () => Promise<A>): Promise<A> {
    const notBegun: readonly number[] = [
      RPC_ERRORS.tooLate,
      RPC_ERRORS.notHere,
      RPC_ERRORS.unavailable,
      RPC_ERRORS.stranger,
      RPC_ERRORS.unknownMethod,
    ];
    if (!notBegun.includes(error.code)) throw error;
    this.#leave();
    return direct();
  }

  #leave(): void {
    if (this.#line === null) return;
    const { record, connection } = this.#line;
    connection.close();
    this.#line = null;
    this.#silent = { record, untilMs: this.parts.platform.clock.monotonicMs() + ASK_AGAIN_MS };
  }

  /** What the daemon has not begun by then, it never will: it is dead, or the time is up. */
  async #untilCertain(record: DaemonRecord, beforeMs: number): Promise<void> {
    const { processes, clock, timers } = this.parts.platform;
    const daemon = processOf(record, processes.self());
    for (;;) {
      const leftMs = beforeMs - clock.monotonicMs();
      if (leftMs < 0 || (await processes.liveness(daemon)) === "dead") return;
      await timers.sleep(Math.min(leftMs + 1, 20)).done;
    }
  }

  /** Null where nobody is there, or nobody was a moment ago. */
  #connected(): { readonly connection: DaemonConnection; readonly record: DaemonRecord } | null {
    if (this.#line?.connection.isOpen === true) return this.#line;
    const { policy, build, ledger, platform } = this.parts;
    const record = this.parts.find();
    if (record === null || this.#isSilent(record)) return null;
    const greeting = { build, clockId: platform.clock.clockId(), policy, ledger };
    this.#line = { connection: connectTo(record, greeting, BEGIN_WITHIN_MS), record };
    return this.#line;
  }

  #isSilent({ pid, startTime }: DaemonRecord): boolean {
    if (this.#silent === null) return false;
    const { record, untilMs } = this.#silent;
    if (this.parts.platform.clock.monotonicMs() > untilMs) return false;
    return record.pid === pid && record.startTime === startTime;
  }
}
