import { sameProcessSpace } from "../../src/platform/liveness";
import type { Liveness, ProcessIdentity } from "../../src/platform/platform";
import type { Counters } from "./counters";
import type { Prng } from "./prng";
import type { Namespaces, SimProcess } from "./process";

const FIRST_PID = 1000;
/** Start times on Linux count hundredths of a second. */
const START_TICK_MS = 10;

interface TableOptions {
  readonly pidReuseProbability: number;
  readonly hidesOtherUsersProcesses: boolean;
}

/** Who runs, or is a zombie, in this boot; per pid namespace. */
export class ProcessTable {
  readonly #options: TableOptions;
  readonly #prng: Prng;
  readonly #counters: Counters;
  readonly #present = new Map<string, SimProcess>();
  readonly #freed = new Map<string, number[]>();
  readonly #nextPid = new Map<string, number>();
  #lastStartTick = 0;

  constructor(options: TableOptions, prng: Prng, counters: Counters) {
    this.#options = options;
    this.#prng = prng;
    this.#counters = counters;
  }

  takePid(namespace: string): number {
    const freed = this.#freed.get(namespace) ?? [];
    if (freed.length > 0 && this.#prng.chance(this.#options.pidReuseProbability)) {
      this.#counters.count("process.pid-reused");
      return freed.splice(this.#prng.below(freed.length), 1)[0]!;
    }
    const pid = this.#nextPid.get(namespace) ?? FIRST_PID;
    this.#nextPid.set(namespace, pid + 1);
    return pid;
  }

  /** Two processes never share pid and start time: the kernel does not hand out a pid twice in one tick. */
  takeStartTime(monotonicMs: number): string {
    this.#lastStartTick = Math.max(this.#lastStartTick + 1, Math.floor(monotonicMs / START_TICK_MS));
    return String(this.#lastStartTick);
  }

  add(process: SimProcess): void {
    this.#present.set(key(process.namespaces, process.pid), process);
  }

  remove(process: SimProcess): void {
    this.#present.delete(key(process.namespaces, process.pid));
    const freed = this.#freed.get(process.namespaces.pid) ?? [];
    freed.push(process.pid);
    this.#freed.set(process.namespaces.pid, freed);
  }

  reboot(): void {
    this.#present.clear();
    this.#freed.clear();
    this.#nextPid.clear();
    this.#lastStartTick = 0;
  }

  identify(viewer: SimProcess, pid: number): ProcessIdentity | null {
    const seen = this.#present.get(key(viewer.namespaces, pid));
    return seen === undefined || seen.isZombie || this.#hides(seen, viewer) ? null : seen.identity;
  }

  /** PROTOCOL 12. */
  liveness(viewer: SimProcess, holder: ProcessIdentity): Liveness {
    const space = sameProcessSpace(holder, viewer.identity);
    if (space !== "same") return space;
    const seen = this.#present.get(key(viewer.namespaces, holder.pid));
    if (seen === undefined) return "dead";
    if (this.#hides(seen, viewer)) return "alive";
    if (seen.isZombie) return "dead";
    const isReused = holder.startTime !== "" && seen.identity.startTime !== holder.startTime;
    return isReused ? "dead" : "alive";
  }

  #hides(seen: SimProcess, viewer: SimProcess): boolean {
    return this.#options.hidesOtherUsersProcesses && seen.uid !== viewer.uid && viewer.uid !== 0;
  }
}

function key(namespaces: Namespaces, pid: number): string {
  return `${namespaces.pid}:${pid}`;
}
