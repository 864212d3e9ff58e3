import type { LeaseStatus } from "../../coordinator/contract";
import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import type { LeaseKey } from "../../kernel/keys";
import { type Lease, sameParty } from "../../kernel/lease";
import type { Clock, Platform, Sleep, Timers } from "../../platform/platform";

/** Long enough for any publish that goes on. A process that dies loses it at once, one that is stopped after this. */
const AT_MOST_SECS = 60;
/** A publish takes milliseconds: so long it is worth looking again at once, before standing in line. */
const SPRINT_MS = 1_000;
const LOOK_EVERY_MS = 3;
/** Somebody has it, or somebody who stands in line is to get it. */
const PATIENT = ["E_LOCK_CONFLICT", "E_QUEUED"];
/** A holder that has died takes notice of nobody: so often it is asked for all the same. */
const LOOK_CLOSELY_EVERY_MS = 50;

/**
 * Leases that a publish takes for its own duration: of the branch, so that those who publish to it go one after the other,
 * and of what concerns everybody. What the caller held before is used, and left to it.
 */
export class Borrowed {
  readonly #platform: Platform;
  /** There while somebody who does not stand in line wants them. */
  readonly #wanted: string;
  readonly #waitMs: number;
  #leases: readonly Lease[] = [];
  #taken = new Set<string>();
  /** Since when they have been ours. */
  takenAtMs = 0;

  constructor(
    private readonly workspace: Workspace,
    private readonly session: Session,
    readonly keys: readonly LeaseKey[],
  ) {
    const { store, config } = workspace;
    this.#platform = store.platform;
    this.#wanted = `${store.layout.agentIndex}/wanted-${store.platform.digest.sha256(keys[0]!).slice(0, 16)}`;
    this.#waitMs = config.values["publish.wait_secs"] * 1000;
  }

  get leases(): readonly Lease[] {
    return this.#leases;
  }

  get isTaken(): boolean {
    return this.#leases.length > 0;
  }

  /** Also when another process of this session has given them back under our hands. */
  async take(onWait: (message: string) => void): Promise<void> {
    const found = await this.#find();
    const before = new Set(found.map(({ lease }) => lease.leaseId as string));
    const leases = (await this.#sprint(this.#isOthers(found))) ?? (await this.#acquire(onWait));
    this.#leases = leases.filter(({ key }) => this.keys.includes(key));
    for (const { leaseId } of this.#leases) if (!before.has(leaseId)) this.#taken.add(leaseId);
    this.takenAtMs = this.#platform.clock.monotonicMs();
  }

  /**
   * Standing in line costs more than a publish takes: whoever has to wait only looks whether the branch is free again, for
   * a while. Null: it is time to get in line, as those do who would else be passed over for ever.
   */
  async #sprint(isHeld: boolean): Promise<readonly Lease[] | null> {
    const { clock } = this.#platform;
    const end = clock.monotonicMs() + Math.min(SPRINT_MS, this.#waitMs);
    for (let isFirst = true; clock.monotonicMs() < end; isFirst = false) {
      try {
        // Asking in vain costs those who have something to do more than it costs us.
        if (!isFirst || !isHeld) return await this.#acquire(null);
      } catch (error) {
        // Those who stand in line come first; and the more get in line, the slower it goes for all.
        const isTaken = error instanceof CotenantError && PATIENT.includes(error.code);
        // Only a person ends a pause: nobody who publishes waits for that unasked.
        if (error instanceof CotenantError && error.code === "E_PAUSED") throw error;
        if (!isTaken) return null;
      }
      await this.#watch(end);
    }
    return null;
  }

  /** Until it seems to be free, or so late. Nothing depends on it: the store decides. */
  async #watch(endMs: number): Promise<void> {
    const { clock, timers, random, files } = this.#platform;
    await this.#show();
    let lookedAtMs = clock.monotonicMs();
    while (clock.monotonicMs() < endMs) {
      const [chance = 0] = random.bytes(1);
      await timers.sleep(LOOK_EVERY_MS * (0.5 + chance / 256)).done;
      // Whoever has it takes notice of us just before giving it back.
      const isNoticed = (await files.stat(this.#wanted)) === null;
      if (!isNoticed && clock.monotonicMs() - lookedAtMs < LOOK_CLOSELY_EVERY_MS) continue;
      if (!this.#isOthers(await this.#find())) return;
      lookedAtMs = clock.monotonicMs();
      // By somebody else now, most likely.
      if (isNoticed) await this.#show();
    }
  }

  #find(): Promise<readonly LeaseStatus[]> {
    return this.session.coordinator.find(this.keys.map((key) => ({ key, leaseId: null })));
  }

  #isOthers(found: readonly LeaseStatus[]): boolean {
    return found.some(({ lease, standing }) => standing === "valid" && !sameParty(lease, this.session.actor));
  }

  /** So that whoever has it does not keep it for its next publish. Nothing depends on it. */
  async #show(): Promise<void> {
    const { files } = this.#platform;
    const show = async () => files.close(await files.open(this.#wanted, "update-or-create"));
    try {
      await show().catch(async () => {
        await files.makeDirectory(this.#wanted.slice(0, this.#wanted.lastIndexOf("/")), 0o700);
        await show();
      });
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

  async #acquire(onWait: ((message: string) => void) | null): Promise<readonly Lease[]> {
    const wait =
      onWait === null || this.#waitMs === 0
        ? null
        : { timeoutMs: this.#waitMs, onWait: ({ message }: { message: string }) => onWait(message) };
    const keys = this.keys.map((key) => ({ key, reach: "repository" as const }));
    const atMostSecs = await this.workspace.withinPolicy(AT_MOST_SECS);
    const bound = { ttlSecs: 0, bind: "process", atMostSecs } as const;
    const options = { ...bound, reason: "publishing", wait };
    try {
      return (await this.session.acquire(keys, options)).leases;
    } catch (error) {
      throw onWait === null ? error : heldUp(error, this.#waitMs);
    }
  }

  /** Whatever comes of it: what is not given back ends with this process. */
  async giveBack(): Promise<void> {
    const own = this.#leases.filter(({ leaseId }) => this.#taken.has(leaseId));
    this.#leases = [];
    this.#taken = new Set();
    if (own.length === 0) return;
    await this.isWanted();
    try {
      await this.session.release(own.map(({ key, leaseId }) => ({ key, leaseId })));
    } catch {
      // Another process of this session was faster, or the disk is full; neither undoes what was published.
    }
  }
}

/** Whoever publishes does not wait by flags: the setting says for how long. */
function heldUp(error: unknown, waitMs: number): unknown {
  const isOthers = error instanceof CotenantError && [...PATIENT, "E_WAIT_TIMEOUT"].includes(error.code);
  if (!isOthers) return error;
  const { code, message, data } = error;
  const hint = `run it again; it has waited ${waitMs / 1000} s (publish.wait_secs); to see who has it: cotenant lock status`;
  return new CotenantError(code, message, { hint, data });
}

/** As long as a program that publishes one thing after the other may take in between. */
const IDLE_MS = 100;

/** Who came back so soon the last time is likely to do so again. */
const AT_ONCE_MS = 10;
/** So long others wait for one who comes back each time: passing it on takes as long as publishing does. */
const BURST_MS = 40;

/**
 * The branch's lease, kept for a moment after a publish: who publishes again at once neither gives it back nor takes it
 * anew. While somebody waits, only by who does so time after time, and only a few times; and never for longer than a moment.
 */
export class KeptBranch {
  readonly #timers: Timers;
  readonly #clock: Clock;
  #politeUntilMs = 0;
  #endedAtMs = 0;
  #comesBack = false;
  #kept: Borrowed | null = null;
  #sleep: Sleep | null = null;

  constructor(
    private readonly session: Session,
    { timers, clock }: Pick<Platform, "timers" | "clock">,
  ) {
    this.#timers = timers;
    this.#clock = clock;
  }

  /** The one that was kept, if it is for these very keys. */
  async again(keys: readonly LeaseKey[]): Promise<Borrowed | null> {
    const kept = this.#forget();
    this.#comesBack = this.#clock.monotonicMs() - this.#endedAtMs <= AT_ONCE_MS;
    // Others look every few milliseconds: whoever has just had it does not snatch it from under their noses.
    const politeMs = this.#politeUntilMs - this.#clock.monotonicMs();
    if (kept === null && politeMs > 0) await this.#timers.sleep(politeMs).done;
    if (kept === null || kept.keys.join("\n") === keys.join("\n")) return kept;
    await kept.giveBack();
    return null;
  }

  /** A publish is over. */
  ended(): void {
    this.#endedAtMs = this.#clock.monotonicMs();
  }

  async keep(borrowed: Borrowed): Promise<void> {
    const isInBurst = this.#comesBack && this.#clock.monotonicMs() - borrowed.takenAtMs < BURST_MS;
    const isWanted = !isInBurst && (await this.#isWanted(borrowed));
    if (isWanted) this.#politeUntilMs = this.#clock.monotonicMs() + 5 * LOOK_EVERY_MS;
    if (isWanted || borrowed.keys.length > 1 || !borrowed.isTaken) return borrowed.giveBack();
    this.#kept = borrowed;
    const sleep = this.#timers.sleep(isInBurst ? 2 * AT_ONCE_MS : IDLE_MS);
    this.#sleep = sleep;
    void sleep.done.then(() => (this.#kept === borrowed ? this.giveBack() : undefined));
  }

  async giveBack(): Promise<void> {
    await this.#forget()?.giveBack();
  }

  async #isWanted(borrowed: Borrowed): Promise<boolean> {
    return (await borrowed.isWanted()) || (await this.session.coordinator.waiters()).length > 0;
  }

  #forget(): Borrowed | null {
    const kept = this.#kept;
    this.#kept = null;
    this.#sleep?.wake();
    this.#sleep = null;
    return kept;
  }
}
