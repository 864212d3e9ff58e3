import type { Session } from "../coordinator/session";
import type { LeaseKey } from "../kernel/keys";
import type { Lease } from "../kernel/lease";
import type { Sleep, Timers } from "../platform/platform";

/** Long enough for any publish; a process that dies loses it at once. */
const TTL_SECS = 120;

/**
 * Leases that a publish takes for its own duration: of the branch, so that those who publish to it go one after the other,
 * and of what concerns everybody. What the caller held before is used, and left to it.
 */
export class Borrowed {
  readonly keys: readonly LeaseKey[];
  readonly #session: Session;
  readonly #waitMs: number;
  #leases: readonly Lease[] = [];
  #taken = new Set<string>();

  constructor(session: Session, keys: readonly LeaseKey[], waitMs: number) {
    this.#session = session;
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
    const wait = { timeoutMs: this.#waitMs, onWait: ({ message }: { message: string }) => onWait(message) };
    const { leases } = await this.#session.acquire(
      this.keys.map((key) => ({ key, reach: "repository" as const })),
      { ttlSecs: TTL_SECS, bind: "process", reason: "publishing", wait: this.#waitMs === 0 ? null : wait },
    );
    this.#leases = leases.filter(({ key }) => this.keys.includes(key));
    for (const { leaseId } of this.#leases) if (!before.has(leaseId)) this.#taken.add(leaseId);
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
