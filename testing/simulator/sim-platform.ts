import { makeClockId } from "../../src/kernel/time";
import type {
  Clock,
  DirectoryWatch,
  Later,
  Liveness,
  PiecewiseDigest,
  Platform,
  Processes,
  ProcessIdentity,
  Sleep,
  Timers,
} from "../../src/platform/platform";
import { toMicros } from "./clock";
import { simCompression } from "./compression";
import type { Machine } from "./machine";
import type { Operation } from "./operation";
import type { SimProcess } from "./process";
import { SimFiles } from "./sim-files";
import { SimLocks } from "./sim-locks";

/** `setTimeout` fires at once when asked for more. */
const LONGEST_SLEEP_MS = 2 ** 31 - 1;

/** The machine as one of its processes sees it. */
export function simPlatform(machine: Machine, process: SimProcess): Platform {
  const { sha256 } = machine.settings;
  const sha1 = (data: Uint8Array) => sha256(data).slice(0, 40);
  return {
    clock: new SimProcessClock(machine, process),
    files: new SimFiles(machine, process),
    locks: new SimLocks(machine, process),
    processes: new SimProcesses(machine, process),
    timers: new SimTimers(machine, process),
    random: { bytes: (length) => machine.entropy.bytes(length) },
    compression: simCompression,
    // Git is not simulated: nobody here compares names of objects with its own.
    digest: { sha256, sha1, begin: (algorithm) => inPieces(algorithm === "sha1" ? sha1 : sha256) },
  };
}

function inPieces(digest: (data: Uint8Array) => string): PiecewiseDigest {
  const pieces: Uint8Array[] = [];
  return { add: (data) => void pieces.push(data.slice()), hex: () => digest(Buffer.concat(pieces)) };
}

/** Stands still for the dead: JavaScript cannot be stopped between two awaits, but it need not see the future. */
class SimProcessClock implements Clock {
  readonly #machine: Machine;
  readonly #process: SimProcess;
  #lastWallMs = 0;
  #lastMonotonicMs = 0;

  constructor(machine: Machine, process: SimProcess) {
    this.#machine = machine;
    this.#process = process;
  }

  wallMs(): number {
    if (this.#process.isAlive) this.#lastWallMs = this.#machine.clock.wallMs();
    return this.#lastWallMs;
  }

  monotonicMs(): number {
    if (this.#process.isAlive) {
      this.#lastMonotonicMs = this.#machine.clock.monotonicMs() + this.#process.namespaces.monotonicOffsetMs;
    }
    return this.#lastMonotonicMs;
  }

  clockId(): string {
    return makeClockId(this.#process.identity.bootId, this.#process.namespaces.time);
  }
}

class SimTimers implements Timers {
  readonly #machine: Machine;
  readonly #process: SimProcess;

  constructor(machine: Machine, process: SimProcess) {
    this.#machine = machine;
    this.#process = process;
  }

  sleep(ms: number): Sleep {
    if (!(ms <= LONGEST_SLEEP_MS)) throw new RangeError(`cannot sleep for ${ms} ms`);
    const { clock, scheduler } = this.#machine;
    if (!this.#process.isAlive) return { done: new Promise(() => {}), wake: () => {} };
    const operation: Operation<void> = {
      kind: "wake",
      path: `after ${ms} ms`,
      dueAtMicros: clock.elapsedMicros + toMicros(Math.max(0, ms)),
      run: () => {},
      die: () => "undone",
    };
    return {
      done: scheduler.park(this.#process, operation),
      wake: () => scheduler.hurry(operation, undefined),
    };
  }

  /** Of a directory that is not there, no notice ever comes: callers poll as well. */
  /** Never to be relied on: what it tells may come late, or be lost. */
  watchDirectory(path: string, notify: () => void): DirectoryWatch {
    const directory = this.#machine.disk.find(path, this.#process.uid)?.inode;
    if (directory?.kind !== "directory" || !this.#process.isAlive) return { isOn: false, close: () => {} };
    return { isOn: false, ...this.#machine.watches.add(this.#process, path, directory, notify) };
  }

  watchFile(path: string, notify: () => void): { close(): void } | null {
    const { disk, watches, settings } = this.#machine;
    const file = disk.find(path, this.#process.uid)?.inode;
    const isToBeHad = file?.kind === "file" && this.#process.isAlive && !settings.isOutOfWatches;
    return isToBeHad ? watches.add(this.#process, path, file, notify) : null;
  }
}

class SimProcesses implements Processes {
  readonly #machine: Machine;
  readonly #process: SimProcess;

  constructor(machine: Machine, process: SimProcess) {
    this.#machine = machine;
    this.#process = process;
  }

  host(): string {
    return this.#machine.settings.host;
  }

  machineId(): string {
    return this.#machine.settings.machineId;
  }

  self(): ProcessIdentity {
    return this.#process.identity;
  }

  userName(): null {
    return null;
  }

  identify(pid: number): Later<ProcessIdentity | null> {
    return this.#machine.scheduler.perform(this.#process, {
      kind: "identify",
      path: `pid ${pid}`,
      run: () => this.#machine.table.identify(this.#process, pid),
    });
  }

  /** Nobody started a simulated process. */
  ancestry(): null {
    return null;
  }

  startedSince(): null {
    return null;
  }

  startTimeNow(): string {
    return "";
  }

  variables(): null {
    return null;
  }

  end(): never {
    throw new Error("nothing that is simulated ends another's process");
  }

  liveness(holder: ProcessIdentity): Later<Liveness> {
    return this.#machine.scheduler.perform(this.#process, {
      kind: "liveness",
      path: `pid ${holder.pid}`,
      run: () => this.#machine.table.liveness(this.#process, holder),
    });
  }
}
