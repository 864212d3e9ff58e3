import type { Platform } from "../platform/platform";
import { Store, type StoreOptions } from "../store/store";

const MOST_OPEN = 16;

/** Stores that many checks share: opened once, with one door to the mutex for all of them (PROTOCOL 1). */
export class OpenStores {
  readonly #open = new Map<string, Store>();

  constructor(private readonly platform: Platform) {}

  of(options: StoreOptions): Store {
    const name = JSON.stringify(options);
    const store = this.#open.get(name) ?? new Store(this.platform, options);
    this.#open.delete(name);
    this.#open.set(name, store);
    return store;
  }

  /** Closes those that were used least lately. Only while no check is under way. */
  tidy(most = MOST_OPEN): void {
    for (const [name, store] of this.#open) {
      if (this.#open.size <= most) break;
      this.#open.delete(name);
      void store.close().catch(() => {});
    }
  }
}
