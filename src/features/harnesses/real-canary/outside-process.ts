import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { setTimeout as nap } from "node:timers/promises";

/** A process that is stuck in the system does not die at once. */
const DYING_MS = 5_000;

/** A program with everything that it is started with. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Gets what it prints: whatever it leaves running may keep a pipe open for ever. */
  readonly outputFile: string;
  /** In a process group of its own, which is killed with it; else in the caller's: whoever ends that ends this, too. */
  readonly isOwnGroup: boolean;
}

/** A process of somebody else's program. */
export class OutsideProcess {
  /** How it ended, in words. Never rejected. */
  readonly exited: Promise<string>;
  readonly #child: ChildProcess;
  readonly #launch: Launch;

  constructor(launch: Launch) {
    this.#launch = launch;
    const { command, args, cwd, env, outputFile, isOwnGroup } = launch;
    const output = openSync(outputFile, "w");
    this.#child = spawn(command, args, {
      cwd,
      env,
      detached: isOwnGroup,
      stdio: ["ignore", output, output],
    });
    closeSync(output);
    this.exited = new Promise((resolve) => {
      this.#child.on("error", (error) => resolve(error.message));
      this.#child.on("exit", (status, signal) => resolve(signal ?? `exit ${status}`));
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** What it has printed so far; nothing once its file is gone. */
  get output(): string {
    try {
      return readFileSync(this.#launch.outputFile, "utf8");
    } catch {
      return "";
    }
  }

  /** Kills it, and waits for the end of what was started; what else is in its group dies with it. */
  async end(): Promise<void> {
    this.kill();
    await Promise.race([this.exited, nap(DYING_MS, undefined, { ref: false })]);
  }

  kill(): void {
    if (this.#launch.isOwnGroup && this.#child.pid !== undefined) killGroup(this.#child.pid);
    else this.#child.kill("SIGKILL");
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // All of them have ended.
  }
}
