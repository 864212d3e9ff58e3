import type { Terminal } from "./terminal";

/** Ends on Ctrl-C, on a polite kill, or when nobody reads any more: each is how a stream is meant to end. */
export class Ending {
  readonly #stop = new AbortController();
  readonly #onSignal = () => this.#stop.abort();

  constructor() {
    process.once("SIGINT", this.#onSignal).once("SIGTERM", this.#onSignal).once("SIGHUP", this.#onSignal);
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  get isHere(): boolean {
    return this.#stop.signal.aborted;
  }

  end(): void {
    this.#stop.abort();
  }

  /** Resolves when the end has come. */
  wait(): Promise<void> {
    return new Promise((resolve) => {
      if (this.isHere) resolve();
      else this.signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  close(): void {
    process.off("SIGINT", this.#onSignal).off("SIGTERM", this.#onSignal).off("SIGHUP", this.#onSignal);
  }
}

const FLUSH_AT = 1 << 16;

/** Collects lines, because a system call for each of a million takes its time. */
export class LinePrinter {
  readonly #terminal: Terminal;
  #pending: string[] = [];
  #size = 0;
  /** Whether anybody is left to read. */
  isHeard = true;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  line(text: string): void {
    this.#pending.push(text, "\n");
    this.#size += text.length + 1;
    if (this.#size >= FLUSH_AT) this.flush();
  }

  flush(): void {
    if (this.#pending.length > 0 && this.isHeard) this.isHeard = this.#terminal.out(this.#pending.join(""));
    this.#pending = [];
    this.#size = 0;
  }
}
