/**
 * What a run of simulations has to have tried. A harness adds the counters of its worlds and fails when one
 * that should have moved stayed at zero: a fault that never struck proves nothing.
 */
export const COUNTERS = [
  "fault.ENOSPC",
  "fault.ENOSPC.short-write",
  "fault.EIO.sync",
  "fault.EIO.sync-reported-again",
  "fault.EIO.read",
  "fault.EIO.other",
  "fault.EROFS",
  "fault.EINTR",
  "fault.EINTR.short-write",
  "fault.ESTALE",
  "fault.EMFILE",
  "crash.kill",
  "crash.kill.operation-done",
  "crash.kill.operation-undone",
  "crash.kill.write-torn",
  "crash.pause",
  "crash.resume",
  "crash.power",
  "crash.power.sector-new",
  "crash.power.sector-old",
  "crash.power.sector-zeroed",
  "crash.power.size-new",
  "crash.power.size-old",
  "crash.power.size-between",
  "crash.power.entry-new",
  "crash.power.entry-old",
  "crash.power.lost-after-failed-sync",
  "disk.write-split",
  "disk.writeback",
  "disk.cache-dropped",
  "disk.inode-reused",
  "clock.wall-jumped-ahead",
  "clock.wall-jumped-back",
  "lock.waited",
  "lock.try-refused",
  "process.pid-reused",
  "process.zombie",
  "watch.delivered",
  "watch.coalesced",
  "watch.dropped",
] as const;

export type CounterName = (typeof COUNTERS)[number];

export class Counters {
  readonly #counts = new Map<CounterName, number>(COUNTERS.map((name) => [name, 0]));

  count(name: CounterName): void {
    this.#counts.set(name, this.get(name) + 1);
  }

  get(name: CounterName): number {
    return this.#counts.get(name) ?? 0;
  }

  add(other: Counters): void {
    for (const name of COUNTERS) this.#counts.set(name, this.get(name) + other.get(name));
  }

  atZero(): CounterName[] {
    return COUNTERS.filter((name) => this.get(name) === 0);
  }

  toJSON(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }
}
