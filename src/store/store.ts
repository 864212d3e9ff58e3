import { CotenantError, fileFailure } from "../errors/cotenant-error";
import type { Command } from "../kernel/commands";
import { type Circumstances, decide, standingOf } from "../kernel/decide";
import type { FactName, FactRecord } from "../kernel/facts";
import type { Ulid } from "../kernel/ids";
import { leftBy, leftNames } from "../kernel/left-issues";
import { PAUSE_FACT } from "../kernel/pause";
import type { Policy } from "../kernel/policy";
import { isRefusal, type Refusal } from "../kernel/refusal";
import { elapsedMs, type Now } from "../kernel/time";
import { type ClaimEvent, tokenAfter, type View } from "../kernel/view";
import type { Platform } from "../platform/platform";
import { presentOn } from "../platform/present";
import { Durability } from "./durability";
import { claimPayload, type Entry, encodeLine, type LogActor } from "./envelope";
import { factsToWire } from "./facts";
import {
  gather,
  gatherEndings,
  gatherFacts,
  isWanted,
  livenessOf,
  type Needs,
  NOTHING,
  needsOf,
} from "./gather";
import type { Ground } from "./ground";
import {
  notCarriedOut,
  type Performed,
  perform,
  type WantedFacts,
  type Write,
  type Written,
} from "./guarded-write";
import { IndexTree } from "./index-tree";
import { type Layout, layoutOf, type Modes, PRIVATE } from "./layout";
import type { Pin } from "./log-file";
import { LogWriter } from "./log-writer";
import { type LockHandle, Mutex } from "./mutex";
import { wholeView } from "./overlay";
import { TicketQueue } from "./queue";
import { type Place, QueueAdmission } from "./queue-admission";
import { Reader } from "./reader";
import type { Head, RequestRecord } from "./replay";
import { findRequest, repeatOutcome, unheardOutcome } from "./requests";
import {
  answering,
  type Decided,
  granted,
  nothingToWrite,
  type Outcome,
  outcomeUnknown,
  type Submission,
  TooLate,
} from "./submission";
import { SyncMark } from "./sync-mark";
import { DamagedIndex } from "./tree-files";

export interface StoreOptions {
  readonly controlDirectory: string;
  readonly modes: Modes;
  readonly busyTimeoutMs: number;
  readonly contendedTimeoutMs: number;
  readonly rotateBytes: number;
  readonly indexLagBytes: number;
  /** What this process is doing, for whoever finds it holding the mutex. */
  readonly doing: string;
  /** Whether the directory is still the one that is meant; asked under the mutex, before anything is decided. */
  readonly isInPlace?: () => boolean;
}

export const DEFAULT_STORE_OPTIONS: Omit<StoreOptions, "controlDirectory"> = {
  modes: PRIVATE,
  busyTimeoutMs: 10_000,
  contendedTimeoutMs: 300_000,
  rotateBytes: 16 << 20,
  indexLagBytes: 0,
  doing: "cotenant",
};

interface Job {
  readonly submission: Submission;
  resolve(outcome: Outcome): void;
  reject(error: unknown): void;
}

/** What a batch leaves to be done once the mutex is free. */
interface Settled {
  readonly log: Pin;
  readonly head: Head;
  readonly wrote: boolean;
  readonly outcomes: readonly { readonly job: Job; readonly outcome: Outcome }[];
}

const MAX_BATCH = 256;
const utf8 = new TextEncoder();

/**
 * The durable log with its index. Every change of leases goes through `submit`; concurrent calls share a sync. Every
 * other change goes through `write`, which proves leases and acts on the strength of them.
 */
export class Store {
  readonly layout: Layout;
  readonly index: IndexTree;
  readonly queue: TicketQueue;
  readonly keeper: LogWriter;
  readonly mutex: Mutex;
  readonly #mark: SyncMark;
  readonly #durability: Durability;
  #reader: Reader | null = null;
  #waiting: Job[] = [];
  #draining = false;

  constructor(
    readonly platform: Platform,
    readonly options: StoreOptions,
  ) {
    const { files, digest } = platform;
    const layout = layoutOf(options.controlDirectory);
    this.layout = layout;
    this.index = new IndexTree(files, digest, layout, options.modes);
    this.mutex = new Mutex(platform, layout, options.modes, options);
    this.queue = new TicketQueue(platform, layout, options.modes);
    this.#mark = new SyncMark(files, digest, layout, options.modes);
    this.keeper = new LogWriter(platform, layout, this.index, this.#mark, options);
    this.#durability = new Durability(platform, layout, this.#mark, this.keeper, (actor, body) =>
      this.hold(actor, body),
    );
  }

  now(): Now {
    return presentOn(this.platform);
  }

  /** Makes the control plane where there is none. */
  prepare(): Promise<void> {
    return this.keeper.makeDirectories();
  }

  submit(submission: Submission): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ submission, resolve, reject });
      if (this.#draining) return;
      this.#draining = true;
      // Not at once: whatever else is asked in this turn shares the critical section and the sync.
      queueMicrotask(() => void this.#drain());
    });
  }

  /** Something that is no lease, proved and logged and carried out as one (promise 3). */
  async write<T>(write: Write<T>): Promise<Written<T>> {
    const { actor } = write;
    let performed: Performed<T>;
    try {
      performed = await this.hold(actor, () => this.#onGround(actor, (ground) => this.#write(write, ground)));
    } catch (error) {
      throw this.#explained(error);
    }
    const { log, head, wrote, settle, failure, written } = performed;
    try {
      await this.#durability.ensure({ fd: log.fd, head, wrote }, false, actor);
      if (failure !== null) throw failure;
      await settle?.();
      return written;
    } catch (error) {
      throw wrote ? notCarriedOut(this.#explained(error), write) : this.#explained(error);
    } finally {
      await log.release().catch(() => {});
    }
  }

  /** Whether anybody has written anything here yet. */
  async exists(): Promise<boolean> {
    try {
      return (await this.platform.files.stat(this.layout.root)) !== null;
    } catch (error) {
      throw this.#explained(error);
    }
  }

  /** For whoever only looks: one for all that share this store, because it keeps files open. */
  get reader(): Reader {
    this.#reader ??= new Reader(this.platform, this.layout);
    return this.#reader;
  }

  /** For one of many in a process that lives on. Nothing may be under way. */
  async close(): Promise<void> {
    await this.mutex.close();
    await this.keeper.close();
    await this.index.close();
    await this.#mark.reopen();
    await this.#reader?.close();
  }

  /** See `Mutex.handle`. */
  async lockHandle(): Promise<LockHandle> {
    if ((await this.platform.files.stat(this.layout.mutex)) === null) await this.prepare();
    return this.mutex.handle();
  }

  /** Runs `body` in the critical section. */
  async hold<T>(actor: LogActor, body: () => Promise<T>): Promise<T> {
    if ((await this.platform.files.stat(this.layout.mutex)) === null) await this.prepare();
    const who = { pid: actor.pid, host: actor.host, agentId: actor.agentId, doing: this.options.doing };
    return this.mutex.hold(who, body);
  }

  /**
   * For a success that wrote nothing: everything up to `head` is on the disk when this returns (PROTOCOL 4),
   * whoever wrote it.
   */
  confirm(head: Head, actor: LogActor): Promise<void> {
    return this.#durability.confirm(head, actor);
  }

  /** For a waiter that gives up; one that dies just leaves its ticket to be found void. */
  async leaveQueue(place: Place, actor: LogActor, policy: Policy): Promise<void> {
    try {
      await this.hold(actor, async () => {
        const admission = this.#admission();
        await admission.leave(place, this.now());
        await this.#onGround(actor, (ground) => this.#wake(admission, policy, ground));
      });
    } catch (error) {
      throw this.#explained(error);
    }
  }

  // --- batches --------------------------------------------------------------------------------------------

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Whoever asks while we wait for the mutex comes along.
      let batch: Job[] = [];
      const { actor } = this.#waiting[0]!.submission;
      try {
        const settled = await this.hold(actor, () => {
          batch = this.#waiting.splice(0, MAX_BATCH);
          return this.#perform(batch);
        });
        // Unlocked by now: syncing outside the mutex is safe, because nothing is acknowledged before it.
        // With others waiting, the next batch is gathered while this one reaches the disk.
        if (batch.length > 1 || this.#waiting.length > 0) void this.#acknowledge(settled, actor, true);
        else await this.#acknowledge(settled, actor, false);
      } catch (error) {
        const failed = batch.length > 0 ? batch : this.#waiting.splice(0, MAX_BATCH);
        for (const job of failed) job.reject(this.#explained(error, job.submission));
      }
    }
    this.#draining = false;
  }

  /** PROTOCOL 4: every success first syncs the log through the newest line it relied on, whoever wrote it. */
  async #acknowledge(settled: Settled, actor: LogActor, background: boolean): Promise<void> {
    const done: Settled["outcomes"][number][] = [];
    for (const decided of settled.outcomes) {
      // A refusal may rest on what is not on the disk yet: that is merely cautious.
      if (decided.outcome.done) done.push(decided);
      else decided.job.resolve(decided.outcome);
    }
    try {
      const { log, head, wrote } = settled;
      if (done.length > 0) await this.#durability.ensure({ fd: log.fd, head, wrote }, background, actor);
      for (const { job, outcome } of done) job.resolve(outcome);
    } catch (error) {
      const explained = this.#explained(error);
      for (const { job } of done) job.reject(outcomeUnknown(explained, job.submission));
    }
    try {
      await settled.log.release();
    } catch {
      // The system has lost a descriptor, and nobody else has lost anything.
    }
  }

  /** No bare `EIO` reaches a caller. */
  #explained(error: unknown, submission: Submission | null = null): unknown {
    if (error instanceof CotenantError) {
      const isUnknown = error.data.outcome === "unknown" && submission !== null;
      return isUnknown ? outcomeUnknown(error, submission) : error;
    }
    const { code, path } = (error ?? {}) as { code?: unknown; path?: unknown };
    if (typeof code !== "string") return error;
    // What a guarded write changes may be anywhere.
    const isElsewhere = typeof path === "string" && !path.startsWith(this.layout.root);
    return isElsewhere
      ? fileFailure(error, "writing", path)
      : fileFailure(error, "working on the store", this.layout.root);
  }

  // --- the critical section -------------------------------------------------------------------------------

  #perform(batch: Job[]): Promise<Settled> {
    const { actor } = batch[0]!.submission;
    return this.#onGround(actor, (ground) => this.#performOn(ground, batch, actor), batch.length);
  }

  /** `act` must have done nothing yet when it finds the index damaged. */
  async #onGround<T>(actor: LogActor, act: (ground: Ground) => Promise<T>, callers = 1): Promise<T> {
    const ground = await this.keeper.stand(actor, callers);
    try {
      return await act(ground);
    } catch (error) {
      if (!(error instanceof DamagedIndex)) throw error;
      // Nothing was decided yet. What the index cannot say, the log can.
      return act(await this.keeper.standAnew(ground));
    }
  }

  #write<T>(write: Write<T>, ground: Ground): Promise<Performed<T>> {
    refuseInVain(this.options, write);
    return perform(
      {
        now: () => this.now(),
        repeated: ({ requestId }, on) => this.#record(requestId, on),
        proof: async (prove, policy, on) => {
          const now = this.now();
          const view = await this.#viewOf(needsOf(prove, [], now, policy), on);
          const liveness = await livenessOf(this.platform, view.leases.values());
          return decide(view, prove, { now, policy, liveness, tickets: [] });
        },
        facts: (wanted, on) => this.#facts(wanted, on),
        makeSure: ({ fd, head }) => this.#durability.ensureHere(fd, head),
        addLine: (on, entry) => this.#addLine(on, entry),
        pin: () => this.keeper.pin(),
        append: (on, text, actor) => this.keeper.append(on, utf8.encode(text), actor),
      },
      write,
      ground,
    );
  }

  async #performOn(ground: Ground, batch: Job[], actor: LogActor): Promise<Settled> {
    const outcomes: { job: Job; outcome: Outcome }[] = [];
    const admission = this.#admission();
    let text = "";
    for (const [done, job] of batch.entries()) {
      try {
        const { outcome, event, facts } = await this.#decide(job.submission, ground, admission);
        if (event !== null) text += this.#encode(event, facts, job.submission, ground);
        if (event !== null) admission.note(event);
        outcomes.push({ job, outcome });
      } catch (error) {
        if (!(error instanceof DamagedIndex)) {
          job.reject(this.#explained(error));
          continue;
        }
        if (done === 0) throw error;
        // Those before it have had their effect on the queue: they are settled now, the others after them.
        this.#waiting.unshift(...batch.splice(done));
        break;
      }
    }
    const log = this.keeper.pin();
    try {
      if (text !== "") await this.keeper.append(ground, utf8.encode(text), actor, batch.length);
    } catch (error) {
      await log.release();
      await admission.takeBack();
      throw error;
    }
    const { policy } = batch[0]!.submission;
    try {
      await this.#wake(admission, policy, ground);
    } catch {
      // What is done is done. Whoever was not told finds out by looking.
    }
    return { log, head: ground.head, wrote: text !== "", outcomes };
  }

  /** One for each critical section: it knows the queue as it is in there. */
  #admission(): QueueAdmission {
    return new QueueAdmission(this.platform, this.queue);
  }

  #wake(admission: QueueAdmission, policy: Policy, ground: Ground): Promise<void> {
    const now = this.now();
    return admission.wake(now, async (extents) => {
      if ((await this.#facts({ facts: [PAUSE_FACT], factKinds: [] }, ground)).size > 0) return null;
      const { leases } = await this.#viewOf({ ...NOTHING, extents }, ground);
      const liveness = await livenessOf(this.platform, leases.values());
      const at: Circumstances = { now, policy, liveness, tickets: [] };
      return [...leases.values()].filter((lease) => standingOf(lease, at) === "valid");
    });
  }

  async #decide(submission: Submission, ground: Ground, admission: QueueAdmission): Promise<Decided> {
    const { command, policy, beforeMs = Number.POSITIVE_INFINITY } = submission;
    const now = this.now();
    if (now.monotonicMs > beforeMs) throw new TooLate("nobody waits for it any more");
    refuseInVain(this.options, submission);
    const repeated = await this.#repeated(submission, ground);
    if (repeated !== null) return nothingToWrite(repeated);
    const isAcquire = command.kind === "acquire";
    const tickets = isAcquire ? await admission.tickets(now) : [];
    const place = admission.placeOf(submission.queue, tickets);
    const placed: Command = isAcquire ? { ...command, ticket: place?.number ?? null } : command;
    const needs = needsOf(placed, tickets, now, policy);
    const view = await this.#viewOf(needs, ground);
    const left = isAcquire ? leftNames(command.keys.map(({ key }) => key)) : [];
    const known = await this.#facts({ facts: [...needs.facts, ...left], factKinds: [] }, ground);
    const liveness = await livenessOf(this.platform, view.leases.values());
    const at: Circumstances = { now, policy, liveness, tickets, facts: known };
    const decision = decide(view, placed, at);
    let queue: Place | Refusal | null = null;
    if (placed.kind === "acquire") {
      queue = await admission.settle(placed, decision, { view, at, place, wish: submission.queue });
    }
    if (isRefusal(queue)) return nothingToWrite({ done: false, refusal: queue, queue: null });
    if (isRefusal(decision)) return nothingToWrite({ done: false, refusal: decision, queue });
    const isNamed = submission.requestId !== null || decision.event !== null;
    const event = isNamed ? answering(decision, placed) : null;
    const facts = new Map([...leftBy(decision, now), ...(decision.facts ?? [])]);
    // Granted, all of them: nobody's leavings any more.
    for (const name of left) if (known.has(name)) facts.set(name, null);
    return { outcome: granted(decision), event, facts };
  }

  async #facts(wanted: WantedFacts, { index, overlay }: Ground): Promise<Map<FactName, FactRecord>> {
    if (index !== null) return gatherFacts(this.index, wanted, overlay);
    const all = new Map<FactName, FactRecord>();
    overlay.layFactsOver(all, (name) => isWanted(name, wanted));
    return all;
  }

  async #viewOf(needs: Needs, ground: Ground): Promise<View> {
    const { nextToken } = ground.head;
    if (ground.index === null) return { ...wholeView(ground.overlay), nextToken };
    return {
      leases: await gather(this.index, needs, ground.overlay),
      endings: await gatherEndings(this.index, needs, ground.overlay),
      nextToken,
    };
  }

  /** The line's text. Ground already stands on it afterwards, for the rest of the batch. */
  #encode(event: ClaimEvent, facts: Decided["facts"], submission: Submission, ground: Ground): string {
    const { overlay } = ground;
    const { requestId, actor } = submission;
    const { type, leases, ended } = event;
    const payload = {
      ...claimPayload(event, submission, this.#waitedMs(submission)),
      ...factsToWire(facts),
    };
    const wallMs = this.platform.clock.wallMs();
    const text = this.#addLine(ground, { type, actor, payload }, wallMs);
    overlay.add(event, wallMs);
    for (const [name, value] of facts)
      overlay.facts.set(name, value === null ? null : { value, sequence: ground.head.sequence });
    ground.head = { ...ground.head, nextToken: tokenAfter(ground.head.nextToken, event) };
    if (requestId === null) return text;
    const { agentId } = actor;
    const timestamp = new Date(wallMs).toISOString();
    const said = { leases, ended, about: null, result: null };
    overlay.requests.set(requestId, { requestId, agentId, type, timestamp, ...said });
    return text;
  }

  #addLine(ground: Ground, entry: Entry, wallMs = this.platform.clock.wallMs()): string {
    const { head } = ground;
    const sequence = head.sequence + 1;
    const place = { sequence, wallMs, synced: this.#mark.known, prev: head.sum };
    const { text, sum } = encodeLine(this.platform.digest, entry, place);
    ground.head = { ...head, offset: head.offset + utf8.encode(text).length, sequence, sum };
    return text;
  }

  /** Since when a grant's ticket stood in the queue; null for whoever did not wait. */
  #waitedMs({ queue }: Submission): number | null {
    const joinedAt = queue?.ticket?.joinedAt;
    return joinedAt === undefined ? null : Math.max(0, Math.round(elapsedMs(joinedAt, this.now())));
  }

  async #repeated(submission: Submission, ground: Ground): Promise<Outcome | null> {
    const { requestId, operationId, isSecond = false } = submission;
    const record = await this.#record(requestId ?? (isSecond ? operationId : null), ground);
    if (record === null) return null;
    if (!isSecond || requestId !== null) return repeatOutcome(record, submission.command);
    return unheardOutcome(this.platform, this.layout, logIn(ground), record, submission.command);
  }

  async #record(requestId: Ulid | null, ground: Ground): Promise<RequestRecord | null> {
    if (requestId === null) return null;
    const inBatch = ground.overlay.requests.get(requestId);
    return inBatch ?? findRequest(this.platform, this.layout, logIn(ground), requestId);
  }
}

/** PROTOCOL 28. And somebody may have moved the directory, and put another one in its place. */
function refuseInVain({ isInPlace }: StoreOptions, { isAwaited }: Pick<Submission, "isAwaited">): void {
  if (isInPlace?.() === false) throw new TooLate("the repository was moved");
  if (isAwaited?.() === false) throw new TooLate("whoever asked for it has left");
}

function logIn({ fd, base }: Ground): { readonly fd: number; readonly size: number } {
  return { fd, size: base.offset };
}
