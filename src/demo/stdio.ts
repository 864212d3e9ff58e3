import * as fs from "node:fs";
import type { Briefing, Order, Report } from "./messages";

/** Says it before going on: what is in the pipe survives us, whatever happens next. */
export function tell(report: Report): void {
  const bytes = Buffer.from(`${JSON.stringify(report)}\n`);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += fs.writeSync(1, bytes, at);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") process.exit(3);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
    }
  }
}

/** Calls `take` for each line of standard input; with its end, whoever started us is gone. */
export function readLines(take: (line: string) => void, atEnd: () => void): void {
  let rest = "";
  process.stdin.setEncoding("utf8");
  process.stdin.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop()!;
    for (const line of lines) take(line);
  });
  process.stdin.on("end", atEnd);
  process.stdin.on("error", atEnd);
}

/** A terminal's Ctrl-C and Ctrl-Z reach the whole group. The demo decides what happens then, and how. */
export function leaveSignalsToTheDemo(): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGTSTP"] as const) process.on(signal, () => {});
}

/** A worker's orders, in the order of their coming. */
export class Inbox {
  readonly #orders: Order[] = [];
  #wake: () => void = () => {};
  #briefed: (briefing: Briefing) => void = () => {};
  /** Its first line. */
  readonly briefing = new Promise<Briefing>((resolve) => {
    this.#briefed = resolve;
  });

  constructor() {
    let isFirst = true;
    readLines(
      (line) => {
        const message = parsed(line);
        if (isFirst) this.#briefed(message as Briefing);
        else this.#orders.push(message as Order);
        isFirst = false;
        this.#wake();
      },
      () => process.exit(3),
    );
  }

  get isEmpty(): boolean {
    return this.#orders.length === 0;
  }

  next(): Order | undefined {
    return this.#orders.shift();
  }

  /** Until an order comes, or the time is up. */
  async wait(ms: number): Promise<void> {
    if (!this.isEmpty) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Only the demo talks to its workers; whoever else does gets no answer. */
function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    process.exit(3);
  }
}
