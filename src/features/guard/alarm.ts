import { CotenantError } from "../../errors/cotenant-error";
import type { Clock, Sleep, Timers } from "../../platform/platform";

/** Time reserved for the work after a wait. */
const AFTERWARDS_MS = 10_000;

/** A time limit for the work of a check. Waiting for a file is no work: for that, the harness's own limit counts. */
export class Alarm {
  readonly #timers: Timers;
  readonly #clock: Clock;
  readonly #patienceEndsMs: number;
  #workLeftMs: number;
  #armedAtMs = 0;
  #sleep: Sleep | null = null;
  /** Ends the watch with an error at once. */
  ring: (error: unknown) => void = () => {};

  constructor(platform: { timers: Timers; clock: Clock }, limits: { workMs: number; patienceMs: number }) {
    this.#timers = platform.timers;
    this.#clock = platform.clock;
    this.#workLeftMs = Math.min(limits.workMs, limits.patienceMs);
    this.#patienceEndsMs = this.#clock.monotonicMs() + limits.patienceMs;
  }

  /** How long a wait may take, with time left for the work after it. */
  get patienceMs(): number {
    return this.#patienceEndsMs - this.#clock.monotonicMs() - Math.min(this.#workLeftMs, AFTERWARDS_MS);
  }

  /** Once the repository's own limit is known. */
  allowWork(workMs: number): void {
    this.#disarm();
    this.#workLeftMs = Math.min(workMs, this.#patienceEndsMs - this.#clock.monotonicMs());
    this.#arm();
  }

  async watch<T>(work: () => Promise<T>): Promise<T> {
    const rung = new Promise<never>((_, reject) => {
      this.ring = reject;
    });
    this.#arm();
    try {
      return await Promise.race([work(), rung]);
    } finally {
      this.#disarm();
    }
  }

  /** The time that this takes does not count. */
  async pausing<T>(wait: () => Promise<T>): Promise<T> {
    this.#disarm();
    try {
      return await wait();
    } finally {
      this.#arm();
    }
  }

  #arm(): void {
    this.#armedAtMs = this.#clock.monotonicMs();
    const sleep = this.#timers.sleep(this.#workLeftMs);
    this.#sleep = sleep;
    void sleep.done.then(() => {
      if (this.#sleep === sleep)
        this.ring(new CotenantError("E_STORE_BUSY", "the guard did not decide in time"));
    });
  }

  #disarm(): void {
    const sleep = this.#sleep;
    this.#sleep = null;
    sleep?.wake();
    this.#workLeftMs = Math.max(1, this.#workLeftMs - (this.#clock.monotonicMs() - this.#armedAtMs));
  }
}
