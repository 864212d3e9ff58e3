import { type ChildProcess, spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";

import type { Answer } from "../../src/features/guard/answers";
import { worldOf } from "../../src/features/guard/entry/world-of";
import { HARNESSES } from "../../src/features/guard/harness";
import { type Answered, runHook } from "../../src/features/guard/run";
import type { World } from "../../src/features/guard/world";
import type { HarnessName } from "../../src/identity/harness";
import type { Git } from "../../src/platform/git";
import { nodeGit } from "../../src/platform/git-node";
import { nodePlatform } from "../../src/platform/node/node";
import type { Platform } from "../../src/platform/platform";
import { afterEveryTest } from "./after-tests";
import type { TestRepo } from "./repo";

/** Processes that stand for harnesses: they live until they are killed. */
const harnesses = new Set<ChildProcess>();
/** By session: whoever names none of its own has one for all that it does. */
const usual = new Map<string, number>();
afterEveryTest(() => {
  for (const child of harnesses) child.kill("SIGKILL");
  harnesses.clear();
  usual.clear();
});

function usualHarness(session: string): number {
  const pid = usual.get(session) ?? harnessProcess().pid;
  usual.set(session, pid);
  return pid;
}

export function harnessProcess(): { readonly pid: number; kill(): Promise<void> } {
  const child = spawn("sleep", ["600"], { stdio: "ignore" });
  harnesses.add(child);
  const gone = new Promise<void>((resolve) => child.on("exit", () => resolve()));
  return {
    pid: child.pid!,
    kill: () => {
      child.kill("SIGKILL");
      return gone;
    },
  };
}

/** The real machine, but for its clock: short sleeps pass at once, and time with them. Long ones are alarms; none rings. */
export class TestClock {
  readonly platform: Platform;
  aheadMs: number;
  /** Told of every pause, with how far time has come since the start. */
  onPause: (aheadMs: number) => Promise<void> | void = () => {};

  constructor(aheadMs = 0) {
    this.aheadMs = aheadMs;
    const real = nodePlatform();
    this.platform = {
      ...real,
      clock: {
        wallMs: () => real.clock.wallMs() + this.aheadMs,
        monotonicMs: () => real.clock.monotonicMs() + this.aheadMs,
        clockId: () => real.clock.clockId(),
      },
      timers: {
        ...real.timers,
        sleep: (ms) => ({ done: ms > 1_000 ? new Promise(() => {}) : this.#pass(ms), wake: () => {} }),
      },
    };
  }

  async #pass(ms: number): Promise<void> {
    this.aheadMs += ms;
    await this.onPause(this.aheadMs);
  }
}

/** The real machine, but that no alarm of the guard rings: on a busy one, slow is right. A Git that hangs needs the alarm. */
function patient(): Platform {
  const real = nodePlatform();
  const never = { done: new Promise<void>(() => {}), wake: () => {} };
  const { sleep } = real.timers;
  return { ...real, timers: { ...real.timers, sleep: (ms) => (ms > 1_000 ? never : sleep(ms)) } };
}

export interface AgentOptions {
  readonly harness?: HarnessName;
  readonly session: string;
  readonly pid?: number;
  readonly subagent?: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: TestClock;
  /** Stands for the real one, which answers unless told otherwise. */
  readonly git?: Git;
  /** The store is broken on purpose: what cannot be done after the fact is noted, and that is right. */
  readonly mayFail?: boolean;
  readonly onWait?: World["onWait"];
  /** How long its harness waits for a hook; too short for a retry unless told. */
  readonly patienceSecs?: number;
}

/** An agent of a harness, as the guard meets it: events in the harness's words, answers to the byte. */
export class GuardedAgent {
  readonly #repo: TestRepo;
  readonly #options: AgentOptions;
  readonly #pid: number;

  constructor(repo: TestRepo, options: AgentOptions) {
    this.#repo = repo;
    this.#options = options;
    this.#pid = options.pid ?? usualHarness(`${options.harness} ${options.session}`);
  }

  get agentId(): string {
    return `agent:${this.#options.harness ?? "claude"}-${this.#options.session.slice(0, 8)}`;
  }

  write(...files: string[]): Promise<Answered> {
    if (files.length > 1) {
      const patch = ["*** Begin Patch", ...files.map((file) => `*** Update File: ${file}`), "*** End Patch"];
      return this.before("apply_patch", { command: patch.join("\n") });
    }
    return this.before("Write", { file_path: path.resolve(this.#cwd, files[0]!), content: "" });
  }

  shell(command: string): Promise<Answered> {
    return this.before("Bash", { command });
  }

  afterShell(command: string): Promise<Answered> {
    return this.send("after", { tool_name: "Bash", tool_input: { command } });
  }

  before(tool: string, input: unknown): Promise<Answered> {
    return this.send("before", { tool_name: tool, tool_input: input });
  }

  async send(
    moment: "before" | "after" | "prompt" | "stop" | "done" | "end" | "failure",
    more: object = {},
  ): Promise<Answered> {
    const { harness = "claude", session, subagent, patienceSecs = 10 } = this.#options;
    const event = HARNESSES[harness].events.find((known) => known.moment === moment)!.name;
    const document = {
      session_id: session,
      cwd: this.#cwd,
      hook_event_name: event,
      ...(subagent === undefined ? {} : { agent_id: subagent }),
      ...more,
    };
    const call = { harness, event, patienceMs: patienceSecs * 1000 };
    const before = this.#failuresNoted();
    const answered = await runHook(this.world, call, { text: JSON.stringify(document) });
    const noted = this.#failuresNoted().slice(before.length);
    // Nothing is refused at such an event, so a test would only see that something was not done.
    if (moment !== "before" && noted.some((line) => line.includes(`"event":"${event}"`)) && !this.#isBroken)
      throw new Error(`the guard failed at ${event}:\n${noted.join("\n")}`);
    return answered;
  }

  get #isBroken(): boolean {
    return this.#options.mayFail === true || this.#options.git !== undefined;
  }

  #failuresNoted(): string[] {
    const file = path.join(this.#repo.control, "guard/failures.jsonl");
    return fs.existsSync(file) ? fs.readFileSync(file, "utf8").trimEnd().split("\n") : [];
  }

  get world(): World {
    const { env = {}, clock, git = nodeGit(), onWait } = this.#options;
    const machine = {
      platform: clock?.platform ?? (this.#options.git === undefined ? patient() : nodePlatform()),
      git,
      env,
      home: process.env["HOME"] ?? null,
      cwd: this.#cwd,
    };
    const world: World = { ...worldOf(machine, this.#pid), parentPid: process.pid };
    return onWait === undefined ? world : { ...world, onWait };
  }

  get #cwd(): string {
    return this.#options.cwd ?? this.#repo.root;
  }
}

export const SILENT: Answered = { stdout: "", stderr: "", status: 0, allowed: true };

/** Why an agent of Claude Code or Codex was refused; fails where it was not. */
export function reasonOf({ stdout }: Answer): string {
  const { hookSpecificOutput } = JSON.parse(stdout) as {
    hookSpecificOutput: { permissionDecision: string; permissionDecisionReason: string };
  };
  if (hookSpecificOutput.permissionDecision !== "deny") throw new Error(`not refused: ${stdout}`);
  return hookSpecificOutput.permissionDecisionReason;
}

/** What an agent of Claude Code was told besides being let through. */
export function toldIn({ stdout }: Answer): string {
  if (stdout === "") return "";
  const { hookSpecificOutput } = JSON.parse(stdout) as { hookSpecificOutput: { additionalContext?: string } };
  return hookSpecificOutput.additionalContext ?? "";
}
