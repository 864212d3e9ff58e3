import { type ChildProcess, fork } from "node:child_process";
import { mkdirSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import { removeTree } from "../../support/remove-tree";
import { bundle, ROOT } from "../bundle";
import type { Task } from "../layer";
import { memoryFolder } from "../memory";
import type { HandSettings, Point, Question, Tried } from "./hand";
import { ROTATE_BYTES } from "./scenarios";
import type { Call } from "./trace";

/** Nothing of this machine's settings reaches the commands; and as few system calls as possible at their start. */
const ENVIRONMENT = {
  PATH: process.env["PATH"],
  HOME: "/nonexistent",
  LC_ALL: "C",
  TZ: "UTC",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
  UV_THREADPOOL_SIZE: "1",
  COTENANT_STORE_ROTATE_BYTES: String(ROTATE_BYTES),
};

/** A process that tries points, one at a time. */
export class HandProcess {
  readonly #child: ChildProcess;
  #settle: { resolve(answer: unknown): void; reject(error: Error): void } | null = null;
  #ended: string | null = null;

  constructor(program: string, settings: HandSettings) {
    mkdirSync(settings.room, { recursive: true });
    this.#child = fork(program, [JSON.stringify(settings)], {
      env: ENVIRONMENT,
      execArgv: [],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    this.#child.on("message", ({ answer, failed }: { answer?: unknown; failed?: string }) => {
      if (failed === undefined) this.#settle?.resolve(answer);
      else this.#settle?.reject(new Error(failed));
    });
    this.#child.on("exit", (status, signal) => {
      this.#ended = `ended with ${signal ?? status}`;
      this.#settle?.reject(new Error(this.#ended));
    });
  }

  calls(scenario: string): Promise<Call[]> {
    return this.#ask({ ask: "calls", scenario }) as Promise<Call[]>;
  }

  callsOfRecovery(point: Point): Promise<Call[]> {
    return this.#ask({ ask: "calls of recovery", point }) as Promise<Call[]>;
  }

  try(point: Point): Promise<Tried> {
    return this.#ask({ ask: "try", point }) as Promise<Tried>;
  }

  /** Resolves once it has ended. Nothing gentler: a command that waits, run in that process, has an ear for SIGTERM. */
  async end(): Promise<void> {
    this.#settle = null;
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== null || signalCode !== null) return;
    const ended = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.kill("SIGKILL");
    await ended;
  }

  async #ask(question: Question): Promise<unknown> {
    try {
      return await new Promise((resolve, reject) => {
        this.#settle = { resolve, reject };
        // One that died between two questions answers none, and nothing else would say so.
        if (this.#ended !== null) reject(new Error(this.#ended));
        else
          this.#child.send(question, (error) => {
            if (error !== null) reject(error);
          });
      });
    } catch (error) {
      throw new Error(`the hand, asked ${JSON.stringify(question)}: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }
}

/** Some hands over the built program, or over one with a planted bug, for as long as `work` takes. */
export async function withHands(
  task: Task,
  count: number,
  work: (hands: readonly HandProcess[]) => Promise<void>,
): Promise<void> {
  // In memory where that is possible: the disk is not what is tried, and a sync that is told to fail fails there too.
  const room = mkdtempSync(join(memoryFolder(), "cotenant-injection-"));
  const { path: program } = await bundle("tests/verify/injection/hand.ts", join(task.scratch, "hand"));
  const tried = await programs(task);
  const hands = Array.from(
    { length: count },
    (_, i) => new HandProcess(program, { room: join(room, String(i)), ...tried }),
  );
  try {
    await work(hands);
  } finally {
    await Promise.all(hands.map((hand) => hand.end()));
    removeTree(room);
  }
}

async function programs(task: Task): Promise<Omit<HandSettings, "room">> {
  const built = {
    binary: join(ROOT, "bin/cotenant"),
    bundle: join(ROOT, "dist/cli.cjs"),
    library: join(ROOT, "dist/index.cjs"),
    // Where everything is tried, no command after a crash gets to see what one before it has kept in memory.
    loaded: task.triesAll ? null : (await task.bundle("tests/support/whole-program.ts")).path,
  };
  if (task.plant === null) return built;
  return { ...built, binary: await task.program(), bundle: join(task.scratch, "main.cjs") };
}
