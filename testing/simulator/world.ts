import type { Descriptor, Later, Platform, ProcessIdentity } from "../../src/platform/platform";
import { SimClock, toMicros } from "./clock";
import { Counters } from "./counters";
import { Disk } from "./disk";
import { DiskView } from "./disk-view";
import { FaultPlan } from "./faults";
import type { Machine } from "./machine";
import type { Operation } from "./operation";
import { type Settings, type SimOptions, settingsOf } from "./options";
import { Prng } from "./prng";
import { type Namespaces, SimProcess } from "./process";
import { ProcessTable } from "./process-table";
import { Scheduler, settleMicrotasks } from "./scheduler";
import { simPlatform } from "./sim-platform";
import { Trace } from "./trace";
import { Watches } from "./watches";

export interface SpawnOptions {
  readonly uid?: number;
  readonly namespaces?: Partial<Namespaces>;
  /** The program may throw: `run()` goes on, and `process.error` tells. */
  readonly mayFail?: boolean;
}

export interface RunBounds {
  /** Default 1,000,000: a program that never ends is a finding, not a hanging test. */
  readonly maxSteps?: number;
  readonly forMs?: number;
  readonly until?: () => boolean;
  /** Between two operations: the place to kill, stop, cut the power, jump the clock. */
  readonly beforeStep?: (world: SimWorld) => void;
}

export interface RunResult {
  /** `stuck`: processes live, but all of them wait for something that cannot come by itself. */
  readonly reason: "finished" | "stuck" | "steps" | "time" | "until";
  readonly steps: number;
}

export interface PowerCutOptions {
  /** How far the wall clock has moved when the machine is up again; negative after a lost clock battery. */
  readonly wallJumpMs?: number;
}

const HOST_NAMESPACES: Namespaces = { pid: "4026531836", time: "4026531834", monotonicOffsetMs: 0 };
const DEFAULT_UID = 1000;
const OUTAGE_MS = 20_000;

/**
 * A machine whose every step follows from one integer: the order of all operations, faults, crash outcomes,
 * times, pids and random bytes. Same seed, same program: same trace.
 */
export class SimWorld {
  readonly seed: number;
  readonly counters = new Counters();
  readonly faults: FaultPlan;
  readonly trace: Trace;
  readonly disk: DiskView;
  readonly #settings: Settings;
  readonly #machine: Machine;
  readonly #chaos: Prng;
  readonly #names: Prng;
  readonly #living = new Set<SimProcess>();
  #bootId: string;
  #failure: { process: SimProcess; error: unknown } | null = null;

  constructor(options: SimOptions, isImmediate = false) {
    const prng = new Prng(options.seed);
    const settings = settingsOf(options, isImmediate, (from) => prng.pick(from));
    this.seed = options.seed;
    this.#settings = settings;
    this.#chaos = prng.stream("chaos");
    this.#names = prng.stream("names");
    this.#bootId = this.#newBootId();
    this.trace = new Trace(settings.traceLimit);
    this.faults = new FaultPlan(prng.stream("faults"), this.counters);
    const clock = new SimClock(settings.startWallMs, this.#names.between(60_000, 6_000_000));
    const scheduler = new Scheduler(settings, {
      prng: prng.stream("schedule"),
      clock,
      faults: this.faults,
      trace: this.trace,
    });
    const watches = new Watches(
      scheduler,
      prng.stream("watches"),
      this.counters,
      settings.watchDropProbability,
      (process, error) => this.#fail(process, error, false),
    );
    const disk = new Disk(settings, {
      prng: prng.stream("disk"),
      counters: this.counters,
      wallMicros: () => clock.wallMicros,
      onChange: (inode) => watches.changed(inode),
    });
    const table = new ProcessTable(settings, prng.stream("pids"), this.counters);
    const { counters } = this;
    this.#machine = {
      settings,
      clock,
      disk,
      scheduler,
      table,
      watches,
      counters,
      entropy: prng.stream("entropy"),
    };
    this.disk = new DiskView(disk);
  }

  /**
   * A world without a schedule: operations happen at once and answer plain values, waits excepted. For property
   * tests that want many operations and no interleavings. Time moves with each operation, by `advance`, and,
   * once every promise is done, to the next sleeper.
   */
  static immediate(options: SimOptions): SimWorld {
    return new SimWorld(options, true);
  }

  get wallMs(): number {
    return this.#machine.clock.wallMs();
  }

  get monotonicMs(): number {
    return this.#machine.clock.monotonicMs();
  }

  /** Since the world began, whatever became of the machine meanwhile. */
  get elapsedMs(): number {
    return this.#machine.clock.elapsedMicros / 1000;
  }

  get bootId(): string {
    return this.#bootId;
  }

  /** A process without a program, driven by the test through its platform. */
  attach(name: string, options: SpawnOptions = {}): SimProcess {
    return this.#create(name, options);
  }

  /** A process that runs `program` once the scheduler starts it, and ends when the program does. */
  spawn<T>(
    name: string,
    program: (platform: Platform) => Promise<T>,
    options: SpawnOptions = {},
  ): SimProcess<T> {
    const process = this.#create<T>(name, options);
    const run = () => {
      void Promise.resolve(process.platform)
        .then(program)
        .then(
          (result) => {
            process.result = result;
            this.#end(process, "finished");
          },
          (error: unknown) => this.#fail(process, error, options.mayFail === true),
        );
    };
    this.#machine.scheduler.post(process, { kind: "start", path: name, run, die: () => "undone" });
    return process;
  }

  /** Processes that are alive, in the order in which they came. */
  living(): SimProcess[] {
    return [...this.#living];
  }

  /** Takes step after step. Throws when a program throws. */
  async run(bounds: RunBounds = {}): Promise<RunResult> {
    const { clock, scheduler } = this.#machine;
    const maxSteps = bounds.maxSteps ?? 1_000_000;
    const endMicros = clock.elapsedMicros + toMicros(bounds.forMs ?? Number.POSITIVE_INFINITY);
    let steps = 0;
    for (;;) {
      await settleMicrotasks();
      this.#throwFailure();
      if (bounds.until?.() === true) return { reason: "until", steps };
      if (steps >= maxSteps) return { reason: "steps", steps };
      if (clock.elapsedMicros >= endMicros) return { reason: "time", steps };
      bounds.beforeStep?.(this);
      if (this.#living.size === 0) return { reason: "finished", steps };
      if (scheduler.step()) {
        steps++;
        continue;
      }
      const next = scheduler.nextDueMicros();
      if (next === null) return { reason: "stuck", steps };
      clock.advanceTo(Math.min(next, endMicros));
    }
  }

  /** Takes steps until this answer is there: for tests that act through `attach`ed processes. */
  async drive<T>(later: Later<T>): Promise<T> {
    let isSettled = false;
    const settled = () => {
      isSettled = true;
    };
    const promise = Promise.resolve(later);
    promise.then(settled, settled);
    const { reason } = await this.run({ until: () => isSettled });
    if (reason !== "until") throw new Error(`seed ${this.seed}: the world is ${reason}, and no answer came`);
    return promise;
  }

  /** Random numbers of the test's own: drawing them moves nothing else. */
  random(purpose: string): Prng {
    return this.#chaos.stream(`test:${purpose}`);
  }

  /** SIGKILL. The system call in progress has happened or not; nothing the process waits for is answered. */
  kill(process: SimProcess, options: { readonly becomesZombie?: boolean } = {}): void {
    if (!process.isAlive) return;
    this.counters.count("crash.kill");
    this.#note(process, "killed");
    this.#end(process, "killed", options.becomesZombie === true);
  }

  /** A zombie's parent asks for its exit status at last. */
  reap(process: SimProcess): void {
    if (!process.isZombie) return;
    process.isZombie = false;
    this.#machine.table.remove(process);
  }

  /** SIGSTOP: keeps descriptors and locks, and takes no step. */
  pause(process: SimProcess): void {
    if (!process.isAlive || process.isPaused) return;
    this.counters.count("crash.pause");
    this.#note(process, "stopped");
    process.isPaused = true;
    this.#machine.scheduler.stop(process);
    this.#machine.scheduler.pump();
  }

  resume(process: SimProcess): void {
    if (!process.isPaused) return;
    this.counters.count("crash.resume");
    this.#note(process, "resumed");
    process.isPaused = false;
    for (const wait of process.lockWaits) wait.joinQueueAgain();
    this.#machine.scheduler.pump();
  }

  /** Everything dies, the disk keeps what it had to and some of the rest, and the machine boots again. */
  powerCut(options: PowerCutOptions = {}): void {
    this.counters.count("crash.power");
    for (const process of this.living()) {
      this.#note(process, "lost power");
      this.#end(process, "killed");
    }
    const { clock, disk, table } = this.#machine;
    disk.losePower();
    table.reboot();
    clock.reboot(this.#chaos.between(1_000, 30_000));
    this.jumpWallClock(options.wallJumpMs ?? OUTAGE_MS);
    this.#bootId = this.#newBootId();
  }

  /** Pages that a failed sync left behind are gone from memory too: processes now read what the platter has. */
  dropCaches(): void {
    this.counters.count("disk.cache-dropped");
    this.disk.dropForgottenPages();
  }

  advance(ms: number): void {
    this.#machine.clock.advanceMicros(toMicros(ms));
    this.#machine.scheduler.pump();
  }

  jumpWallClock(ms: number): void {
    if (ms !== 0) this.counters.count(ms > 0 ? "clock.wall-jumped-ahead" : "clock.wall-jumped-back");
    this.#machine.clock.jumpWall(ms);
  }

  /** As a child inherits it: both share one open file, and its lock lasts until both have closed it. */
  shareDescriptor(from: SimProcess, fd: Descriptor, to: SimProcess): Descriptor {
    const file = from.descriptors.get(fd);
    file.references++;
    return to.descriptors.add(file);
  }

  #create<T>(name: string, options: SpawnOptions): SimProcess<T> {
    const { table, clock } = this.#machine;
    const namespaces = { ...HOST_NAMESPACES, ...options.namespaces };
    const uid = options.uid ?? DEFAULT_UID;
    const identity: ProcessIdentity = {
      machineId: this.#settings.machineId,
      bootId: this.#bootId,
      pidNamespace: namespaces.pid,
      timeNamespace: namespaces.time,
      user: String(uid),
      pid: table.takePid(namespaces.pid),
      startTime: table.takeStartTime(clock.monotonicMs() + namespaces.monotonicOffsetMs),
    };
    const { maxDescriptors } = this.#settings;
    const process = new SimProcess<T>({ name, uid, namespaces, identity, maxDescriptors }, (self) =>
      simPlatform(this.#machine, self),
    );
    this.#living.add(process);
    table.add(process);
    return process;
  }

  #fail(process: SimProcess, error: unknown, isExpected: boolean): void {
    if (!process.isAlive) return;
    process.error = error;
    if (!isExpected) this.#failure ??= { process, error };
    this.#end(process, "failed");
  }

  #end(process: SimProcess, state: "finished" | "failed" | "killed", becomesZombie = false): void {
    if (!process.isAlive) return;
    const { disk, scheduler, table, watches } = this.#machine;
    for (const operation of scheduler.withdraw(process)) this.#cutShort(operation, state === "killed");
    for (const file of process.descriptors.removeAll()) disk.close(file);
    watches.closeAllOf(process);
    this.#living.delete(process);
    process.state = state;
    process.isPaused = false;
    process.isZombie = becomesZombie;
    if (becomesZombie) this.counters.count("process.zombie");
    else table.remove(process);
    scheduler.pump();
  }

  #cutShort(operation: Operation<unknown>, isKill: boolean): void {
    const outcome = operation.die?.(this.#chaos) ?? this.#happensOrNot(operation);
    if (!isKill) return;
    if (outcome === "torn") this.counters.count("crash.kill.write-torn");
    else if (outcome === "done") this.counters.count("crash.kill.operation-done");
    else this.counters.count("crash.kill.operation-undone");
  }

  #happensOrNot(operation: Operation<unknown>): "done" | "undone" {
    if (operation.isReady?.() === false || !this.#chaos.chance(0.5)) return "undone";
    try {
      operation.run(this.#chaos);
    } catch {
      // It failed, and there is nobody left to tell.
    }
    return "done";
  }

  #throwFailure(): void {
    if (this.#failure === null) return;
    const { process, error } = this.#failure;
    this.#failure = null;
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`seed ${this.seed}, step ${this.trace.step}: ${process.name} failed: ${message}`, {
      cause: error,
    });
  }

  #note(process: SimProcess, what: string): void {
    this.trace.record(this.#machine.clock.elapsedMicros, process.name, what, "-");
  }

  #newBootId(): string {
    const digits = this.#names.hex(32);
    return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  }
}
