import type { Conversation } from "./conversation";
import { inTime, Late } from "./deadline";
import { type Launch, OutsideProcess } from "./outside-process";

/** One run of a harness's program, from its prompt to its end. */
export class ProgramRun {
  readonly #process: OutsideProcess;
  readonly #conversation: Conversation;
  readonly #mostMs: number;

  /** `mostMs`: whoever needs longer hangs. */
  constructor(launch: Launch, conversation: Conversation, mostMs: number) {
    this.#conversation = conversation;
    this.#mostMs = mostMs;
    this.#process = new OutsideProcess(launch);
    this.#process.exited.then((how) => {
      conversation.hangUp(`${how}, printed: ${this.output.slice(-400).trim() || "nothing"}`);
    });
  }

  get pid(): number {
    return this.#process.pid;
  }

  get output(): string {
    return this.#process.output;
  }

  /** Waits for the script and for the program's end; what the script throws is thrown. */
  async finish(): Promise<void> {
    const endMs = performance.now() + this.#mostMs;
    try {
      await inTime(this.#conversation.ended, "it was not done", this.#mostMs);
      const restMs = Math.max(0, endMs - performance.now());
      await inTime(this.#process.exited, "it did not end", restMs);
    } catch (error) {
      if (error instanceof Late)
        error.message += `; it printed: ${this.output.slice(-600).trim() || "nothing"}`;
      throw error;
    } finally {
      await this.#process.end();
    }
  }

  /** Throws once the program has ended or its script has failed: for whoever waits for something else meanwhile. */
  async failed(): Promise<never> {
    const ended = Promise.race([this.#conversation.ended, this.#process.exited]);
    await inTime(ended, "nothing happened", this.#mostMs);
    throw new Error(`the program ended too early, and printed: ${this.output.slice(-400).trim()}`);
  }

  /** Only the process that was started, as the system does it when memory is short. */
  async killAlone(): Promise<void> {
    process.kill(this.pid, "SIGKILL");
    await inTime(this.#process.exited, "the program did not die", this.#mostMs);
  }

  kill(): void {
    this.#process.kill();
  }
}
