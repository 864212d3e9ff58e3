import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { createInterface } from "node:readline";
import { bundle } from "../../verify/bundle";
import type { Cast, Order } from "./agent-process";
import type { Deed } from "./deeds";
import type { Played } from "./dialect";
import type { Outcome } from "./player";
import type { Done, Job } from "./work";

/** No order takes longer, on a busy machine either. */
const MOST_MS = 60_000;

/** A scripted agent that runs while the test goes on. */
export class ScriptedAgent {
  readonly harness: Played;
  readonly session: string;
  readonly gone: Promise<void>;
  readonly #child: ChildProcess;
  readonly #waiting: ((answer: object) => void)[] = [];
  #stderr = "";
  #isGone = false;

  constructor(program: string, cast: Cast, env: NodeJS.ProcessEnv) {
    this.harness = cast.harness;
    this.session = cast.session;
    const child = spawn(process.execPath, [program, JSON.stringify(cast)], {
      cwd: cast.root,
      env,
      stdio: "pipe",
      // A group of its own, so that what it started can be found when it is gone.
      detached: true,
    });
    this.#child = child;
    child.stdin!.on("error", () => {});
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
    });
    createInterface({ input: child.stdout! }).on("line", (line) => this.#waiting.shift()?.(JSON.parse(line)));
    this.gone = new Promise((resolve) => {
      child.on("close", () => {
        this.#isGone = true;
        for (const answer of this.#waiting.splice(0)) answer({ gone: true });
        resolve();
      });
    });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** Answers in the order of the orders; `{ gone: true }` when it is killed before. */
  tell(order: Order, mostMs = MOST_MS): Promise<object> {
    return new Promise((resolve, reject) => {
      if (this.#isGone) return resolve({ gone: true });
      const timer = setTimeout(
        () => reject(new Error(`${this.harness} ${this.session}: no answer to ${JSON.stringify(order)}`)),
        mostMs,
      );
      this.#waiting.push((answer) => {
        clearTimeout(timer);
        if (this.#stderr !== "") reject(new Error(this.#stderr));
        else resolve(answer);
      });
      this.#child.stdin!.write(`${JSON.stringify(order)}\n`);
    });
  }

  act(deed: Deed): Promise<Outcome> {
    return this.tell({ order: "act", deed }) as Promise<Outcome>;
  }

  write(file: string, content: string): Promise<Outcome> {
    return this.act({ do: "write", file, content });
  }

  shell(command: string): Promise<Outcome> {
    return this.act({ do: "shell", command });
  }

  prompt(): Promise<object> {
    return this.tell({ order: "prompt", prompt: "go on" });
  }

  stop(): Promise<object> {
    return this.tell({ order: "stop" });
  }

  end(): Promise<object> {
    return this.tell({ order: "end" });
  }

  work(job: Job): Promise<Done | { gone: true }> {
    return this.tell({ order: "work", job }, 10 * MOST_MS) as Promise<Done | { gone: true }>;
  }

  /** As if the harness had crashed. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.gone;
  }

  /** Whatever of it is left: hooks live on for a moment when their harness is killed. */
  sweep(): void {
    try {
      process.kill(-this.pid, "SIGKILL");
    } catch {
      // Nothing is.
    }
  }

  async leave(): Promise<void> {
    this.#child.stdin!.end();
    await this.gone;
  }
}

/** Agents of any harness, in one repository. */
export class Rig {
  readonly #program: string;
  readonly #folder: string | null;
  readonly #place: Omit<Cast, "harness" | "session" | "subagent">;
  readonly #env: Readonly<Record<string, string>>;
  readonly agents: ScriptedAgent[] = [];
  #sessions = 0;

  constructor(
    program: string,
    folder: string | null,
    place: Omit<Cast, "harness" | "session" | "subagent">,
    env: Readonly<Record<string, string>>,
  ) {
    this.#program = program;
    this.#folder = folder;
    this.#place = place;
    this.#env = env;
  }

  /** The agent's program is made once for it. */
  static async make(
    place: Omit<Cast, "harness" | "session" | "subagent">,
    env: Readonly<Record<string, string>> = {},
  ): Promise<Rig> {
    const folder = mkdtempSync(path.join(tmpdir(), "cotenant-rig-"));
    const { path: program } = await bundle("tests/support/harness/agent-process.ts", folder);
    return new Rig(program, folder, place, env);
  }

  /** A new session, started. */
  async hire(
    harness: Played,
    more: { readonly session?: string; readonly subagent?: string } = {},
  ): Promise<ScriptedAgent> {
    // Of the sort that harnesses use, and different in its first eight characters.
    const number = (++this.#sessions).toString(16).padStart(4, "0");
    const session =
      more.session ??
      `${number}${process.pid.toString(16).padStart(4, "0").slice(-4)}-0000-4000-8000-000000000000`;
    const env = {
      ...process.env,
      COTENANT_AGENT_ID: undefined,
      COTENANT_SESSION_ID: undefined,
      ...this.#env,
    };
    const agent = new ScriptedAgent(this.#program, { ...this.#place, harness, session, ...more }, env);
    this.agents.push(agent);
    await agent.tell({ order: "start" });
    return agent;
  }

  async dismiss(): Promise<void> {
    for (const agent of this.agents) {
      if (!agent.isGone) await agent.kill();
      agent.sweep();
    }
    if (this.#folder !== null) rmSync(this.#folder, { recursive: true, force: true });
  }
}
