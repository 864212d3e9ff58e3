import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { History, Operation, Window } from "./history";
import type { Orders } from "./orders";
import { clear, makePlace, type Place } from "./place";
import { nowMs, processName, readRecord } from "./record";

const FOREVER: Window = { fromMs: Number.POSITIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };

/** One worker's process, from its start to its end. */
export class WorkerProcess {
  readonly name: string;
  readonly record: string;
  readonly gone: Promise<void>;
  isGone = false;
  isStopped = false;
  readonly #child: ChildProcess;
  readonly #identity: string;
  #hasBegun = false;
  #killedMs: number | null = null;
  #goneMs: number | null = null;
  #stderr = "";

  constructor(name: string, record: string, child: ChildProcess) {
    this.name = name;
    this.record = record;
    this.#child = child;
    // Whoever has been started is there until it is waited for, so its start time can be read.
    this.#identity = processName({ pid: child.pid!, startTime: startTimeOf(child.pid!) });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
    });
    this.gone = new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("exit", () => {
        this.#goneMs = nowMs();
        this.isGone = true;
        resolve();
      });
    });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** Whether it has begun: before that a kill or a stop would hit nothing but Node's own start. */
  get isAtWork(): boolean {
    this.#hasBegun ||= (statSync(this.record, { throwIfNoEntry: false })?.size ?? 0) > 0;
    return this.#hasBegun;
  }

  kill(): void {
    this.#killedMs ??= nowMs();
    this.#child.kill("SIGKILL");
  }

  stop(): void {
    this.isStopped = true;
    this.#child.kill("SIGSTOP");
  }

  goOn(): void {
    this.isStopped = false;
    this.#child.kill("SIGCONT");
  }

  /** Lets it finish what it is at, and leave. */
  leave(): void {
    this.#child.stdin!.end();
  }

  /** What it did; after its end. */
  story(): { operations: Operation[]; death: readonly [process: string, window: Window]; trouble: string[] } {
    const toMs = this.#goneMs ?? Number.POSITIVE_INFINITY;
    const { operations, byeMs, trouble } = readRecord(this.record, { fromMs: 0, toMs });
    const fromMs = this.#killedMs ?? byeMs ?? operations.at(-1)?.endedMs ?? 0;
    const said = this.#stderr === "" ? [] : [this.#stderr];
    const death = this.#goneMs === null ? FOREVER : { fromMs: Math.min(fromMs, toMs), toMs };
    return {
      operations,
      death: [this.#identity, death],
      trouble: [...trouble, ...said].map((one) => `${this.name}: ${one}`),
    };
  }
}

/** All workers that ever worked in one place. */
export class Crew {
  readonly workers: WorkerProcess[] = [];
  readonly #place: Place;
  readonly #program: string;
  readonly #env: Readonly<Record<string, string>>;

  constructor(place: Place, program: string, env: Readonly<Record<string, string>> = {}) {
    this.#place = place;
    this.#program = program;
    this.#env = env;
  }

  get present(): WorkerProcess[] {
    return this.workers.filter(({ isGone }) => !isGone);
  }

  /** How much has been recorded: what a run's events are timed by, so that a busy machine gets as many as an idle one. */
  get recordedBytes(): number {
    const sizes = this.workers.map(({ record }) => statSync(record, { throwIfNoEntry: false })?.size ?? 0);
    return sizes.reduce((sum, size) => sum + size, 0);
  }

  hire(
    orders: Omit<Orders, "cwd" | "record" | "witness" | "name">,
    env: Readonly<Record<string, string>> = {},
  ): WorkerProcess {
    const name = `w${this.workers.length}`;
    const { worktrees, witness, folder } = this.#place;
    const cwd = worktrees[this.workers.length % worktrees.length]!;
    const record = join(folder, `${name}.record`);
    const told: Orders = { ...orders, cwd, record, witness, name };
    const child = spawn(process.execPath, [this.#program, JSON.stringify(told)], {
      cwd,
      env: { ...this.#place.env, ...this.#env, ...env },
      stdio: ["pipe", "ignore", "pipe"],
    });
    const worker = new WorkerProcess(name, record, child);
    this.workers.push(worker);
    return worker;
  }

  /** Ends everybody that is left, whatever state they are in. */
  async dismiss(): Promise<void> {
    for (const worker of this.present) worker.kill();
    await Promise.all(this.workers.map(({ gone }) => gone));
  }

  /** Everything that anybody was told, with what others did besides. */
  history(others: readonly Operation[] = []): History & { readonly trouble: readonly string[] } {
    const stories = this.workers.map((worker) => worker.story());
    return {
      operations: [...stories.flatMap(({ operations }) => operations), ...others],
      deaths: new Map(stories.map(({ death }) => death)),
      trouble: stories.flatMap(({ trouble }) => trouble),
    };
  }
}

function startTimeOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
  } catch {
    return "";
  }
}

/** Somewhere to work, with a crew; both are gone afterwards, whatever happened. */
export async function withCrew(
  below: string,
  program: string,
  act: (place: Place, crew: Crew) => Promise<void>,
): Promise<void> {
  const place = makePlace(below);
  const crew = new Crew(place, program);
  try {
    await act(place, crew);
  } finally {
    await crew.dismiss();
    clear(place);
  }
}
