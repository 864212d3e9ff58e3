import type { ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import type { CotenantError } from "../errors/cotenant-error";
import { DEFAULT_GIT_TIMEOUT_MS, type GitProcess, type GitProcessOptions } from "./git";

const GRACE_MS = 2_000;
/** What it says of itself is for people. */
const KEPT_STDERR = 4_096;

/** Makes an error of a Git that could not be started, or of one that does not answer. */
export interface Explain {
  readonly notRun: (error: Error) => CotenantError;
  readonly tooSlow: (timeoutMs: number) => CotenantError;
}

export function startGitProcess(
  args: readonly string[],
  options: GitProcessOptions & { readonly environment: Record<string, string> },
  explain: Explain,
): GitProcess {
  const { spawn } = require("node:child_process") as typeof import("node:child_process");
  const child = spawn("git", args, {
    cwd: options.cwd,
    env: options.environment,
    stdio: ["pipe", "pipe", "pipe", ...(options.inherit ?? [])],
    windowsHide: true,
  });
  return new NodeGitProcess(child, options.timeoutMs ?? DEFAULT_GIT_TIMEOUT_MS, explain);
}

class NodeGitProcess implements GitProcess {
  readonly pid: number | null;
  readonly #child: ChildProcess;
  readonly #timeoutMs: number;
  readonly #explain: Explain;
  #chunks: Buffer[] = [];
  #held = 0;
  #stderr = "";
  #isOver = false;
  #failure: CotenantError | null = null;
  /** Called whenever there may be more to read. */
  #notify: () => void = () => {};
  #onClose: () => void = () => {};
  readonly #closed: Promise<void>;

  constructor(child: ChildProcess, timeoutMs: number, explain: Explain) {
    this.#child = child;
    this.#timeoutMs = timeoutMs;
    this.#explain = explain;
    this.pid = child.pid ?? null;
    this.#closed = new Promise((resolve) => {
      this.#onClose = resolve;
    });
    child.stdout?.on("data", (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#held += chunk.length;
      this.#notify();
    });
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString("utf8")).slice(-KEPT_STDERR);
    });
    // It may end without reading all of its input; its answers say whether that matters.
    child.stdin?.on("error", () => {});
    child.once("error", (error) => {
      this.#failure = explain.notRun(error);
      this.#over();
    });
    child.once("close", () => this.#over());
    this.#hold(false);
  }

  get isOver(): boolean {
    return this.#isOver || this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  write(data: string | Uint8Array): void {
    this.#child.stdin?.write(data);
  }

  async readLine(): Promise<string | null> {
    const end = await this.#until(() => this.#lineEnd());
    if (end === null) return null;
    const line = this.#take(end + 1);
    return line.subarray(0, end).toString("latin1");
  }

  async read(length: number): Promise<Uint8Array | null> {
    const enough = await this.#until(() => (this.#held >= length ? length : null));
    return enough === null ? null : this.#take(length);
  }

  async end(): Promise<{ status: number; stderr: string }> {
    this.#hold(true);
    this.#child.stdin?.end();
    const timers = [
      setTimeout(() => this.#child.kill("SIGTERM"), this.#timeoutMs),
      setTimeout(() => this.kill(), this.#timeoutMs + GRACE_MS),
    ];
    await this.#closed;
    for (const timer of timers) clearTimeout(timer);
    if (this.#failure !== null) throw this.#failure;
    return { status: this.#child.exitCode ?? -1, stderr: this.#stderr };
  }

  kill(): void {
    this.#child.kill("SIGKILL");
    this.#child.stdout?.destroy();
    this.#child.stderr?.destroy();
  }

  #over(): void {
    this.#isOver = true;
    this.#notify();
    this.#onClose();
  }

  /** Waits until `look` finds what it wants, or until no more can come. */
  async #until<T>(look: () => T | null): Promise<T | null> {
    let found = look();
    if (found !== null || this.#isOver) return this.#orFailure(found);
    this.#hold(true);
    let timer: NodeJS.Timeout | undefined;
    try {
      const timedOut = new Promise<"slow">((resolve) => {
        timer = setTimeout(() => resolve("slow"), this.#timeoutMs);
      });
      while (found === null && !this.#isOver) {
        const news = new Promise<"news">((resolve) => {
          this.#notify = () => resolve("news");
        });
        if ((await Promise.race([news, timedOut])) === "slow") {
          this.kill();
          throw this.#explain.tooSlow(this.#timeoutMs);
        }
        found = look();
      }
      return this.#orFailure(found);
    } finally {
      clearTimeout(timer);
      this.#notify = () => {};
      this.#hold(false);
    }
  }

  #orFailure<T>(found: T | null): T | null {
    if (found === null && this.#failure !== null) throw this.#failure;
    return found;
  }

  /** Keeps this process alive only while somebody waits for an answer. */
  #hold(isAwaited: boolean): void {
    const { stdin, stdout, stderr } = this.#child;
    for (const handle of [this.#child, stdin, stdout, stderr] as (Socket | null)[]) {
      if (isAwaited) handle?.ref?.();
      else handle?.unref?.();
    }
  }

  #lineEnd(): number | null {
    let before = 0;
    for (const chunk of this.#chunks) {
      const at = chunk.indexOf(10);
      if (at !== -1) return before + at;
      before += chunk.length;
    }
    return null;
  }

  #take(length: number): Buffer {
    const all = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    const rest = all.subarray(length);
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#held = rest.length;
    return all.subarray(0, length);
  }
}
