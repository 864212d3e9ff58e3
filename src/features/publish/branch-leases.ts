import type { LeaseStatus } from "../../coordinator/contract";
import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import type { LeaseKey } from "../../kernel/keys";
import { type Lease, sameParty } from "../../kernel/lease";
import type { Clock, Platform, Sleep, Timers } from "../../platform/platform";

/** Long enough for any publish that goes on. A process that dies loses it at once, one that is stopped after this. */
const AT_MOST_SECS = 60;
/** A publish takes milliseconds: for this long, polling is cheaper than queueing. */
const SPRINT_MS = 1_000;
const LOOK_EVERY_MS = 3;
/** It is held, or reserved for a waiter in the queue. */
const PATIENT = ["E_LOCK_CONFLICT", "E_QUEUED"];
/** Dead holders never clear the flag; recheck at this interval. */
const LOOK_CLOSELY_EVERY_MS = 50;

/**
 * Leases that a publish takes for its own duration: of the branch, so that those who publish to it go one after the other,
 * and of what concerns everybody. What the caller held before is used, and left to it.
 */
export class BorrowedLeases {
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

  /**
   * Also when another process of this session has given them back under our hands. Answers whether somebody else has had them
   * meanwhile.
   */
  async take(onWait: (message: string) => void): Promise<boolean> {
    const found = await this.#find();
    const before = new Set(found.map(({ lease }) => lease.leaseId as string));
    let isContended = this.#isOthers(found);
    const sprinted = await this.#sprint(isContended, () => {
      isContended = true;
    });
    const leases = sprinted ?? (await this.#acquire(onWait));
    this.#leases = leases.filter(({ key }) => this.keys.includes(key));
    for (const { leaseId } of this.#leases) if (!before.has(leaseId)) this.#taken.add(leaseId);
    this.takenAtMs = this.#platform.clock.monotonicMs();
    return isContended || sprinted === null;
  }

  /** Queueing costs more than a publish takes, so at first it only polls. Null: time to queue, so as not to be starved. */
  async #sprint(isHeld: boolean, onTaken: () => void): Promise<readonly Lease[] | null> {
    const { clock } = this.#platform;
    const end = clock.monotonicMs() + Math.min(SPRINT_MS, this.#waitMs);
    for (let isFirst = true; clock.monotonicMs() < end; isFirst = false) {
      try {
        // A refused request costs others more than it costs us.
        if (!isFirst || !isHeld) return await this.#acquire(null);
      } catch (error) {
        // The queue comes first; and the longer it is, the slower it goes for all.
        const isTaken = error instanceof CotenantError && PATIENT.includes(error.code);
        // Only a person ends a pause: a publish does not wait for that unless asked to.
        if (error instanceof CotenantError && error.code === "E_PAUSED") throw error;
        if (!isTaken) return null;
        onTaken();
      }
      await this.#watch(end);
    }
    return null;
  }

  /** Until it seems to be free, or until `endMs`. A hint only: the store decides. */
  async #watch(endMs: number): Promise<void> {
    const { clock, timers, random, files } = this.#platform;
    await this.#show();
    let lookedAtMs = clock.monotonicMs();
    while (clock.monotonicMs() < endMs) {
      const [chance = 0] = random.bytes(1);
      await timers.sleep(LOOK_EVERY_MS * (0.5 + chance / 256)).done;
      // Its holder clears the flag just before giving it back.
      const isNoticed = (await files.stat(this.#wanted)) === null;
      if (!isNoticed && clock.monotonicMs() - lookedAtMs < LOOK_CLOSELY_EVERY_MS) continue;
      if (!this.#isOthers(await this.#find())) return;
      lookedAtMs = clock.monotonicMs();
      // Another waiter has it by now, most likely.
      if (isNoticed) await this.#show();
    }
  }

  #find(): Promise<readonly LeaseStatus[]> {
    return this.session.coordinator.find(this.keys.map((key) => ({ key, leaseId: null })));
  }

  #isOthers(found: readonly LeaseStatus[]): boolean {
    return found.some(({ lease, standing }) => standing === "valid" && !sameParty(lease, this.session.actor));
  }

  /** Sets the flag, so that the holder does not keep it for its next publish. A hint only. */
  async #show(): Promise<void> {
    const { files } = this.#platform;
    const show = async () => files.close(await files.open(this.#wanted, "update-or-create"));
    try {
      await show().catch(async () => {
        await files.makeDirectory(this.#wanted.slice(0, this.#wanted.lastIndexOf("/")), 0o700);
        await show();
      });
    } catch {
      // Then it waits a little longer.
    }
  }

  /** Whether the flag was set since the last time; clears it. */
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

  /** Never throws: what is not given back ends with this process. */
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

/** How long a publish waits is a setting, not a flag. */
function heldUp(error: unknown, waitMs: number): unknown {
  const isOthers = error instanceof CotenantError && [...PATIENT, "E_WAIT_TIMEOUT"].includes(error.code);
  if (!isOthers) return error;
  const { code, message, data } = error;
  const hint = `run it again; it has waited ${waitMs / 1000} s (publish.wait_secs); to see who has it: cotenant lock status`;
  return new CotenantError(code, message, { hint, data });
}

/** The pause between two publishes of a program that publishes one after the other. */
const IDLE_MS = 100;

/** A caller that came back this soon is likely to do so again. */
const AT_ONCE_MS = 10;
/** How long such a caller may keep others waiting: passing the lease on takes as long as a publish. */
const BURST_MS = 40;

/**
 * The branch's lease, kept for a moment after a publish, so that the next one of the same caller need not take it anew. While
 * others wait, it is kept only in a burst, and only for `BURST_MS`.
 */
export class KeptBranch {
  readonly #timers: Timers;
  readonly #clock: Clock;
  #politeUntilMs = 0;
  #endedAtMs = 0;
  #comesBack = false;
  #kept: BorrowedLeases | null = null;
  #sleep: Sleep | null = null;

  constructor(
    private readonly session: Session,
    { timers, clock }: Pick<Platform, "timers" | "clock">,
  ) {
    this.#timers = timers;
    this.#clock = clock;
  }

  /** The one that was kept, if it is for these very keys. */
  async again(keys: readonly LeaseKey[]): Promise<BorrowedLeases | null> {
    const kept = this.#forget();
    this.#comesBack = this.#clock.monotonicMs() - this.#endedAtMs <= AT_ONCE_MS;
    // Others poll every few milliseconds: the last holder gives them a chance first.
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

  async keep(borrowed: BorrowedLeases): Promise<void> {
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

  async #isWanted(borrowed: BorrowedLeases): Promise<boolean> {
    return (await borrowed.isWanted()) || (await this.session.coordinator.waiters()).length > 0;
  }

  #forget(): BorrowedLeases | null {
    const kept = this.#kept;
    this.#kept = null;
    this.#sleep?.wake();
    this.#sleep = null;
    return kept;
  }
}
