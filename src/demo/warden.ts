import { type ChildProcess, spawn } from "node:child_process";
import { nodePlatform } from "../platform/node/node";
import type { ProcessIdentity } from "../platform/platform";
import { removeScratch } from "./scratch";
import { leaveSignalsToTheDemo, readLines } from "./stdio";

/**
 * Workers end with their standard input; but one that was stopped cannot read. So there is one more process, in
 * a session of its own, that does nothing but outlive the demo for a moment if the demo is killed: it kills what
 * is left, stopped or not, and removes the scratch repository.
 */
export class Warden {
  readonly #process: ChildProcess;

  constructor(program: string, env: Readonly<Record<string, string>>) {
    this.#process = spawn(process.execPath, [program, "demo", "warden"], {
      env,
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
      windowsHide: true,
    });
    // If it cannot start or is killed, the demo goes on: it is needed only if the demo dies.
    this.#process.on("error", () => {});
    this.#process.stdin?.on("error", () => {});
  }

  guard(pid: number): void {
    this.#say({ guard: pid });
  }

  forget(pid: number): void {
    this.#say({ forget: pid });
  }

  /** What to remove; null to keep it. */
  folder(path: string | null): void {
    this.#say({ folder: path });
  }

  /** Nothing is left to be done. */
  dismiss(): Promise<void> {
    this.#say({ folder: null });
    this.#process.stdin?.end();
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#process.kill("SIGKILL");
        resolve();
      }, 3_000);
      this.#process.once("exit", () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #say(message: WardenMessage): void {
    this.#process.stdin?.write(`${JSON.stringify(message)}\n`);
  }
}

type WardenMessage =
  | { readonly guard: number }
  | { readonly forget: number }
  | { readonly folder: string | null };

/** The process itself. */
export function runWarden(): Promise<never> {
  leaveSignalsToTheDemo();
  const { processes } = nodePlatform();
  const guarded = new Map<number, ProcessIdentity>();
  let folder: string | null = null;
  return new Promise(() => {
    readLines(
      (line) => {
        const message = JSON.parse(line) as WardenMessage;
        if ("folder" in message) folder = message.folder;
        else if ("forget" in message) guarded.delete(message.forget);
        else {
          const identity = processes.identify(message.guard) as ProcessIdentity | null;
          if (identity !== null) guarded.set(message.guard, identity);
        }
      },
      () => void cleanUp([...guarded.values()], folder).finally(() => process.exit(0)),
    );
  });
}

async function cleanUp(left: readonly ProcessIdentity[], folder: string | null): Promise<void> {
  const { processes, timers } = nodePlatform();
  // By identity, not by number alone: the number may belong to somebody else by now.
  const alive = () => left.filter((one) => processes.liveness(one) !== "dead");
  for (const { pid } of alive()) process.kill(pid, "SIGKILL");
  for (let look = 0; look < 100 && alive().length > 0; look++) await timers.sleep(20).done;
  if (folder !== null) removeScratch(folder);
}
