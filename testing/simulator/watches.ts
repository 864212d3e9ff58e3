import type { Counters } from "./counters";
import type { Inode } from "./inode";
import type { Prng } from "./prng";
import type { SimProcess } from "./process";
import type { Scheduler } from "./scheduler";

interface Watch {
  readonly process: SimProcess;
  readonly path: string;
  readonly notify: () => void;
  isPending: boolean;
}

/** Notices about changed directories and files. They come late, are merged while one is on its way, and may be lost. */
export class Watches {
  readonly #watches = new Map<Inode, Set<Watch>>();
  readonly #scheduler: Scheduler;
  readonly #prng: Prng;
  readonly #counters: Counters;
  readonly #dropProbability: number;
  readonly #onThrow: (process: SimProcess, error: unknown) => void;

  constructor(
    scheduler: Scheduler,
    prng: Prng,
    counters: Counters,
    dropProbability: number,
    onThrow: (process: SimProcess, error: unknown) => void,
  ) {
    this.#scheduler = scheduler;
    this.#prng = prng;
    this.#counters = counters;
    this.#dropProbability = dropProbability;
    this.#onThrow = onThrow;
  }

  add(process: SimProcess, path: string, inode: Inode, notify: () => void): { close(): void } {
    const watch: Watch = { process, path, notify, isPending: false };
    const all = this.#watches.get(inode) ?? new Set();
    this.#watches.set(inode, all.add(watch));
    return { close: () => all.delete(watch) };
  }

  changed(inode: Inode): void {
    for (const watch of this.#watches.get(inode) ?? []) {
      if (this.#prng.chance(this.#dropProbability)) this.#counters.count("watch.dropped");
      else if (watch.isPending) this.#counters.count("watch.coalesced");
      else this.#send(inode, watch);
    }
  }

  closeAllOf(process: SimProcess): void {
    for (const all of this.#watches.values()) {
      for (const watch of all) if (watch.process === process) all.delete(watch);
    }
  }

  #send(inode: Inode, watch: Watch): void {
    watch.isPending = true;
    const deliver = () => {
      watch.isPending = false;
      if (!this.#watches.get(inode)?.has(watch)) return;
      this.#counters.count("watch.delivered");
      try {
        watch.notify();
      } catch (error) {
        this.#onThrow(watch.process, error);
      }
    };
    this.#scheduler.post(watch.process, {
      kind: "notify",
      path: watch.path,
      run: deliver,
      die: () => "undone",
    });
  }
}
