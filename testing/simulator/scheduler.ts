import type { Later } from "../../src/platform/platform";
import type { SimClock } from "./clock";
import type { FaultPlan } from "./faults";
import { isFaultable, type Operation, type OperationKind, UNFINISHED } from "./operation";
import { codeOf, PosixError } from "./posix-error";
import type { Prng } from "./prng";
import type { SimProcess } from "./process";
import { summarize, type Trace } from "./trace";

/** One operation that has come to its end. */
export interface Happening {
  /** The name of the process. */
  readonly process: string;
  readonly kind: OperationKind;
  readonly path: string;
  /** The code that it failed with. */
  readonly error: string | null;
  /** A write of which others see the first part by now, and whose rest is still to come. */
  readonly isHalfDone: boolean;
}

export interface SchedulerOptions {
  readonly isImmediate: boolean;
  /** Told of every operation that shows, unless its process died in it. For whoever watches from outside. */
  readonly onOperation: ((happening: Happening) => void) | null;
  /** How often the next step may go to another process. Low values let one process run far ahead. */
  readonly switchProbability: number;
  /** The longest that one operation takes. */
  readonly operationMicros: number;
}

interface Surroundings {
  readonly prng: Prng;
  readonly clock: SimClock;
  readonly faults: FaultPlan;
  readonly trace: Trace;
}

interface Parked {
  readonly process: SimProcess;
  readonly operation: Operation<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

const realSetImmediate = setImmediate;

/**
 * Waits until every process has run as far as it can without the scheduler: all promise reactions and all
 * `nextTick`s are done. A macrotask starts only when the microtask queue is empty, however long the chains
 * in it were, so this needs no guess about how many turns an `await` in the code under test takes; and what
 * happens in between is ordered by the microtask queue alone, which is deterministic. It costs about a
 * microsecond. Code under test that waits for real timers or real I/O would break the determinism.
 */
export function settleMicrotasks(): Promise<void> {
  return new Promise((resolve) => realSetImmediate(resolve));
}

/** Holds every operation that a process waits for, and decides which one happens next. */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #around: Surroundings;
  #parked: Parked[] = [];
  #lastProcess: SimProcess | null = null;
  #isIdleTickArmed = false;

  constructor(options: SchedulerOptions, around: Surroundings) {
    this.#options = options;
    this.#around = around;
  }

  /** Runs the operation when its turn comes; at once in immediate mode, unless it has to wait for something. */
  perform<T>(process: SimProcess, operation: Operation<T>): Later<T> {
    if (!process.isAlive) return this.#afterDeath(process, operation);
    if (!this.#options.isImmediate || operation.isReady?.() === false) return this.park(process, operation);
    try {
      const value = this.#execute(process, operation);
      return value === UNFINISHED ? this.park(process, operation) : value;
    } finally {
      this.pump();
    }
  }

  park<T>(process: SimProcess, operation: Operation<T>): Promise<T> {
    const promise = new Promise<T>((resolve, reject) => {
      this.#parked.push({ process, operation, resolve: resolve as (value: unknown) => void, reject });
    });
    if (operation.dueAtMicros !== undefined) this.#armIdleTick();
    return promise;
  }

  /** For what the machine does by itself: nobody waits for the answer. */
  post(process: SimProcess, operation: Operation<void>): void {
    if (!process.isAlive) return;
    void this.park(process, operation);
    if (this.#options.isImmediate) void Promise.resolve().then(() => this.pump());
  }

  /** Takes one operation that can happen now and lets it happen. False when there is none. */
  step(): boolean {
    const ready = this.#ready();
    if (ready.length === 0) return false;
    const { prng } = this.#around;
    const ofLast = ready.filter((parked) => parked.process === this.#lastProcess);
    const stays = ofLast.length > 0 && !prng.chance(this.#options.switchProbability);
    this.#finish(prng.pick(stays ? ofLast : ready));
    return true;
  }

  /** In immediate mode: lets happen what an earlier operation, or the time, has made possible. */
  pump(): void {
    if (!this.#options.isImmediate) return;
    for (let ready = this.#ready(); ready.length > 0; ready = this.#ready()) this.#finish(ready[0]!);
  }

  /** When the next sleeper of a process that is not stopped wakes up. */
  nextDueMicros(): number | null {
    let next: number | null = null;
    for (const { process, operation } of this.#parked) {
      const due = operation.dueAtMicros;
      if (due === undefined || process.isPaused) continue;
      if (next === null || due < next) next = due;
    }
    return next;
  }

  /** Ends a wait early, from inside the process that waits. */
  hurry<T>(operation: Operation<T>, value: T): void {
    const parked = this.#parked.find((other) => other.operation === operation);
    if (parked === undefined) return;
    this.#remove(parked);
    parked.resolve(value);
  }

  /** Takes away everything a dying process waits for; none of it will ever be answered. */
  withdraw(process: SimProcess): Operation<unknown>[] {
    const withdrawn = this.#parked.filter((parked) => parked.process === process);
    this.#parked = this.#parked.filter((parked) => parked.process !== process);
    return withdrawn.map((parked) => parked.operation);
  }

  stop(process: SimProcess): void {
    for (const parked of this.#parked) if (parked.process === process) parked.operation.stop?.();
  }

  #ready(): Parked[] {
    const now = this.#around.clock.elapsedMicros;
    return this.#parked.filter(
      ({ process, operation }) =>
        !process.isPaused &&
        (operation.dueAtMicros === undefined || operation.dueAtMicros <= now) &&
        operation.isReady?.() !== false,
    );
  }

  #finish(parked: Parked): void {
    this.#lastProcess = parked.process;
    // First of all: a notice may call the platform, which in immediate mode looks for the next one to finish.
    this.#remove(parked);
    try {
      const value = this.#execute(parked.process, parked.operation);
      if (value === UNFINISHED) this.#parked.push(parked);
      else parked.resolve(value);
    } catch (error) {
      parked.reject(error);
    }
  }

  #execute<T>(process: SimProcess, operation: Operation<T>): T | typeof UNFINISHED {
    const { clock, faults, prng, trace } = this.#around;
    clock.advanceMicros(prng.between(1, this.#options.operationMicros));
    const { kind, path } = operation;
    const what = operation.detail === undefined ? `${kind} ${path}` : `${kind} ${path} ${operation.detail}`;
    const fault = isFaultable(kind) ? faults.strike(kind, path, process.name) : null;
    const { onOperation } = this.#options;
    try {
      const value = fault === null ? operation.run(prng) : failed(operation, fault, prng);
      const result = value === UNFINISHED ? "half done" : summarize(value);
      trace.record(clock.elapsedMicros, process.name, what, fault === null ? result : `${fault}, ${result}`);
      onOperation?.({ process: process.name, kind, path, error: null, isHalfDone: value === UNFINISHED });
      return value;
    } catch (error) {
      const code = codeOf(error) || "threw";
      trace.record(clock.elapsedMicros, process.name, what, code);
      onOperation?.({ process: process.name, kind, path, error: code, isHalfDone: false });
      throw error;
    }
  }

  #remove(parked: Parked): void {
    const at = this.#parked.indexOf(parked);
    if (at >= 0) this.#parked.splice(at, 1);
  }

  // A killed process never hears of anything again. Without a schedule its caller is the test itself, which
  // should rather learn of its mistake.
  #afterDeath<T>(process: SimProcess, operation: Operation<T>): Promise<T> {
    if (this.#options.isImmediate) {
      throw new PosixError("ESRCH", operation.path, `${process.name} is dead and called ${operation.kind}`);
    }
    return new Promise(() => {});
  }

  // Immediate mode has no `run()` that would see everyone asleep: time moves on when all promises are done.
  #armIdleTick(): void {
    if (!this.#options.isImmediate || this.#isIdleTickArmed) return;
    this.#isIdleTickArmed = true;
    void settleMicrotasks().then(() => {
      this.#isIdleTickArmed = false;
      const next = this.nextDueMicros();
      if (next === null) return;
      this.#around.clock.advanceTo(next);
      this.pump();
      if (this.nextDueMicros() !== null) this.#armIdleTick();
    });
  }
}

function failed<T>(
  operation: Operation<T>,
  code: Parameters<NonNullable<Operation<T>["fail"]>>[0],
  prng: Prng,
): T {
  if (operation.fail !== undefined) return operation.fail(code, prng);
  throw new PosixError(code, operation.path, "injected");
}
