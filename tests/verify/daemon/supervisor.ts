import { type ChildProcess, spawn } from "node:child_process";
import type { Place } from "../linearizability/place";

/** Keeps a daemon running in a place, and makes its life hard. */
export class Supervisor {
  readonly #place: Place;
  readonly #program: string;
  readonly trouble: string[] = [];
  /** What those have answered that are gone, at least. */
  requests = 0;
  #child: ChildProcess | null = null;
  #gone: Promise<void> = Promise.resolve();
  #isEnding = false;

  constructor(place: Place, program: string) {
    this.#place = place;
    this.#program = program;
  }

  /** Resolves when it can be asked. */
  start(): Promise<void> {
    const { worktrees, env } = this.#place;
    const child = spawn(process.execPath, [this.#program, worktrees[0]!], {
      cwd: worktrees[0]!,
      env: { ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#child = child;
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    let asked = 0;
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      asked = Number(/(\d+)\n$/.exec(text)?.[1] ?? asked);
    });
    this.#gone = new Promise((resolve) => {
      child.on("exit", (code) => {
        this.requests += asked;
        if (code !== null && code !== 0 && !this.#isEnding) this.trouble.push(`the daemon ended: ${said}`);
        resolve();
      });
    });
    return new Promise((resolve) => {
      child.stdout.once("data", () => resolve());
      child.once("exit", () => resolve());
    });
  }

  async kill(): Promise<void> {
    this.#child?.kill("SIGKILL");
    await this.#gone;
  }

  /** Stops it for a while in the middle of whatever it is at. */
  async freeze(ms: number): Promise<void> {
    this.#child?.kill("SIGSTOP");
    await new Promise((resolve) => setTimeout(resolve, ms));
    this.#child?.kill("SIGCONT");
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    this.#child?.stdin?.end();
    const timer = setTimeout(() => this.#child?.kill("SIGKILL"), 5_000);
    await this.#gone;
    clearTimeout(timer);
  }
}
