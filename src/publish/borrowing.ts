import type { Session } from "../coordinator/session";
import { CotenantError } from "../errors/cotenant-error";
import type { LeaseKey } from "../kernel/keys";
import type { Lease } from "../kernel/lease";
import type { Platform, Sleep, Timers } from "../platform/platform";
import type { Store } from "../store/store";
import { TreeNames } from "../store/tree-names";

/** Long enough for any publish; a process that dies loses it at once. */
const TTL_SECS = 120;
/** A publish takes milliseconds: so long it is worth looking again at once, before standing in line. */
const SPRINT_MS = 1_000;
const LOOK_EVERY_MS = 3;

/**
 * Leases that a publish takes for its own duration: of the branch, so that those who publish to it go one after the other,
 * and of what concerns everybody. What the caller held before is used, and left to it.
 */
export class Borrowed {
  readonly keys: readonly LeaseKey[];
  readonly #session: Session;
  readonly #platform: Platform;
  /** Of the first of them, in the index. */
  readonly #file: string;
  readonly #waitMs: number;
  #leases: readonly Lease[] = [];
  #taken = new Set<string>();

  constructor(store: Store, session: Session, keys: readonly LeaseKey[], waitMs: number) {
    this.#session = session;
    this.#platform = store.platform;
    this.#file = new TreeNames(store.layout, store.platform.digest).meta(keys[0]!, null);
    this.keys = keys;
    this.#waitMs = waitMs;
  }

  get leases(): readonly Lease[] {
    return this.#leases;
  }

  get isTaken(): boolean {
    return this.#leases.length > 0;
  }

  /** Also when another process of this session has given them back under our hands. */
  async take(onWait: (message: string) => void): Promise<void> {
    const { coordinator } = this.#session;
    const refs = this.keys.map((key) => ({ key, leaseId: null }));
    const before = new Set((await coordinator.find(refs)).map(({ lease }) => lease.leaseId as string));
    const leases = (await this.#sprint()) ?? (await this.#acquire(onWait));
    this.#leases = leases.filter(({ key }) => this.keys.includes(key));
    for (const { leaseId } of this.#leases) if (!before.has(leaseId)) this.#taken.add(leaseId);
  }

  /**
   * Standing in line costs more than a publish takes: whoever has to wait only looks whether the branch is free again, for
   * a while. Null: it is time to get in line, as those do who would else be passed over for ever.
   */
  async #sprint(): Promise<readonly Lease[] | null> {
    const { clock, timers, random } = this.#platform;
    const end = clock.monotonicMs() + Math.min(SPRINT_MS, this.#waitMs);
    while (clock.monotonicMs() < end) {
      try {
        return await this.#acquire(null);
      } catch (error) {
        if (!(error instanceof CotenantError) || error.code !== "E_LOCK_CONFLICT") return null;
      }
      do {
        const [chance = 0] = random.bytes(1);
        await timers.sleep(LOOK_EVERY_MS * (0.5 + chance / 256)).done;
      } while (clock.monotonicMs() < end && (await this.#isHeld()));
    }
    return null;
  }

  /** One look at the index, which may be wrong: the store decides. */
  async #isHeld(): Promise<boolean> {
    const { files } = this.#platform;
    return (await files.stat(this.#file)) !== null;
  }

  async #acquire(onWait: ((message: string) => void) | null): Promise<readonly Lease[]> {
    const wait =
      onWait === null || this.#waitMs === 0
        ? null
        : { timeoutMs: this.#waitMs, onWait: ({ message }: { message: string }) => onWait(message) };
    const keys = this.keys.map((key) => ({ key, reach: "repository" as const }));
    const options = { ttlSecs: TTL_SECS, bind: "process", reason: "publishing", wait } as const;
    return (await this.#session.acquire(keys, options)).leases;
  }

  /** Whatever comes of it: what is not given back ends with this process. */
  async giveBack(): Promise<void> {
    const own = this.#leases.filter(({ leaseId }) => this.#taken.has(leaseId));
    this.#leases = [];
    this.#taken = new Set();
    if (own.length === 0) return;
    try {
      await this.#session.release(own.map(({ key, leaseId }) => ({ key, leaseId })));
    } catch {
      // Another process of this session was faster, or the disk is full; neither undoes what was published.
    }
  }
}

/** As long as a program that publishes one thing after the other may take in between. */
const IDLE_MS = 100;

/**
 * The branch's lease, kept for a moment after a publish: who publishes again at once neither gives it back nor takes it
 * anew. Not while anybody waits, and never for longer than a moment.
 */
export class KeptBranch {
  readonly #session: Session;
  readonly #timers: Timers;
  #kept: Borrowed | null = null;
  #sleep: Sleep | null = null;

  constructor(session: Session, timers: Timers) {
    this.#session = session;
    this.#timers = timers;
  }

  /** The one that was kept, if it is for these very keys. */
  async again(keys: readonly LeaseKey[]): Promise<Borrowed | null> {
    const kept = this.#forget();
    if (kept === null || kept.keys.join("\n") === keys.join("\n")) return kept;
    await kept.giveBack();
    return null;
  }

  async keep(borrowed: Borrowed): Promise<void> {
    const isWanted = (await this.#session.coordinator.waiters()).length > 0;
    if (isWanted || borrowed.keys.length > 1 || !borrowed.isTaken) return borrowed.giveBack();
    this.#kept = borrowed;
    const sleep = this.#timers.sleep(IDLE_MS);
    this.#sleep = sleep;
    void sleep.done.then(() => (this.#kept === borrowed ? this.giveBack() : undefined));
  }

  async giveBack(): Promise<void> {
    await this.#forget()?.giveBack();
  }

  #forget(): Borrowed | null {
    const kept = this.#kept;
    this.#kept = null;
    this.#sleep?.wake();
    this.#sleep = null;
    return kept;
  }
}
