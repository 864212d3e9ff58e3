import { constants } from "node:os";

/** Somebody does not want to see the end. */
export class Interrupted extends Error {
  readonly exit: number;

  constructor(signal: NodeJS.Signals) {
    super(`stopped by ${signal}`);
    this.exit = 128 + constants.signals[signal];
  }
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** A demo that was suspended would find everybody late when it goes on. */
const ignore = () => {};

/** Turns the signals that end a program into a failure, so that there is time to clean up. */
export class Interrupts {
  readonly #interrupted: Promise<never>;
  #listener: (signal: NodeJS.Signals) => void = () => {};

  constructor() {
    this.#interrupted = new Promise((_, reject) => {
      this.#listener = (signal) => reject(new Interrupted(signal));
    });
    this.#interrupted.catch(() => {});
    for (const signal of SIGNALS) process.on(signal, this.#listener);
    process.on("SIGTSTP", ignore);
  }

  unless<T>(work: Promise<T>): Promise<T> {
    // What fails after the interrupt fails because of it.
    work.catch(() => {});
    return Promise.race([work, this.#interrupted]);
  }

  close(): void {
    for (const signal of SIGNALS) process.off(signal, this.#listener);
    process.off("SIGTSTP", ignore);
  }
}
