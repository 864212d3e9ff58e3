import type { Session } from "../coordinator/session";
import { CotenantError } from "../errors/cotenant-error";
import type { LeaseKey } from "../kernel/keys";
import type { Lease } from "../kernel/lease";
import type { Clock, Platform, Sleep, Timers } from "../platform/platform";
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
  /** There while somebody who does not stand in line wants them. */
  readonly #wanted: string;
  readonly #waitMs: number;
  #leases: readonly Lease[] = [];
  #taken = new Set<string>();

  constructor(store: Store, session: Session, keys: readonly LeaseKey[], waitMs: number) {
    this.#session = session;
    this.#platform = store.platform;
    this.#file = new TreeNames(store.layout, store.platform.digest).meta(keys[0]!, null);
    this.#wanted = `${store.layout.agentIndex}/wanted-${store.platform.digest.sha256(keys[0]!).slice(0, 16)}`;
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
      await this.#show();
      do {
        const [chance = 0] = random.bytes(1);
        await timers.sleep(LOOK_EVERY_MS * (0.5 + chance / 256)).done;
      } while (clock.monotonicMs() < end && (await this.#isHeld()));
    }
    return null;
  }

  /** So that whoever has it does not keep it for its next publish. Nothing depends on it. */
  async #show(): Promise<void> {
    const { files } = this.#platform;
    try {
      await files.makeDirectory(this.#wanted.slice(0, this.#wanted.lastIndexOf("/")), 0o700);
      await files.close(await files.open(this.#wanted, "update-or-create"));
    } catch {
      // It waits a little longer.
    }
  }

  /** Whether anybody has shown that they want it since the last time; and takes notice of it. */
  async isWanted(): Promise<boolean> {
    try {
      return await this.#platform.files.unlink(this.#wanted);
    } catch {
      return false;
    }
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
  readonly #clock: Clock;
  #politeUntilMs = 0;
  #kept: Borrowed | null = null;
  #sleep: Sleep | null = null;

  constructor(session: Session, { timers, clock }: Pick<Platform, "timers" | "clock">) {
    this.#session = session;
    this.#timers = timers;
    this.#clock = clock;
  }

  /** The one that was kept, if it is for these very keys. */
  async again(keys: readonly LeaseKey[]): Promise<Borrowed | null> {
    const kept = this.#forget();
    // Others look every few milliseconds: whoever has just had it does not snatch it from under their noses.
    const politeMs = this.#politeUntilMs - this.#clock.monotonicMs();
    if (kept === null && politeMs > 0) await this.#timers.sleep(politeMs).done;
    if (kept === null || kept.keys.join("\n") === keys.join("\n")) return kept;
    await kept.giveBack();
    return null;
  }

  async keep(borrowed: Borrowed): Promise<void> {
    const isWanted = (await borrowed.isWanted()) || (await this.#session.coordinator.waiters()).length > 0;
    if (isWanted) this.#politeUntilMs = this.#clock.monotonicMs() + 2 * LOOK_EVERY_MS;
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
