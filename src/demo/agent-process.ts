import { type ChildProcess, spawn } from "node:child_process";
import type { Held } from "../../testing/workload/guarded-write";
import type { Briefing, Doing, OrderBody, Outcome, Report } from "./messages";
import { within } from "./within";

export type AgentState = "starting" | "up" | "stopped" | "dead" | "gone";

export interface Done {
  readonly outcome: Outcome;
  readonly leases: readonly Held[];
}

interface Pending {
  resolve(done: Done): void;
  reject(error: Error): void;
  onQueued(): void;
}

/** What the crew does with what an agent's process says and how it ends. */
export interface Listener {
  heard(agent: AgentProcess, report: Report): void;
  /** All it ever said has been heard by now. */
  ended(agent: AgentProcess, pid: number, how: { readonly killed: boolean; readonly asking: boolean }): void;
  /** It ended, and nobody had wanted that. */
  failed(agent: AgentProcess, story: string): void;
}

const ORDER_MS = 15_000;

/** The demo's side of one agent: a process, and after its death another one in its name. */
export class AgentProcess {
  readonly name: string;
  readonly agentId: string;
  readonly cwd: string;
  state: AgentState = "dead";
  pid: number | null = null;
  worktreeId = "";
  /** In an incident: not to be touched by another one. */
  isCast = false;
  doing: { readonly what: Doing; readonly keys: readonly string[] } = { what: "rests", keys: [] };
  #runs = 0;
  #orders = 0;
  #process: ChildProcess | null = null;
  #asking = false;
  #wasKilled = false;
  #closed: Promise<void> = Promise.resolve();
  #isReady: () => void = () => {};
  /** Since its first run. */
  readonly ready = new Promise<void>((resolve) => {
    this.#isReady = resolve;
  });
  readonly #pending = new Map<number, Pending>();
  readonly #listener: Listener;

  constructor(name: string, cwd: string, listener: Listener) {
    this.name = name;
    this.agentId = `agent:${name}`;
    this.cwd = cwd;
    this.#listener = listener;
  }

  /** A new run is a new session: what the last one held is not its own. */
  start(
    program: string,
    env: Readonly<Record<string, string>>,
    briefing: Omit<Briefing, "name" | "agentId" | "sessionId" | "cwd">,
  ): void {
    const { name, agentId, cwd } = this;
    this.#runs++;
    this.#wasKilled = false;
    this.#asking = false;
    this.state = "starting";
    this.doing = { what: "rests", keys: [] };
    const child = spawn(process.execPath, [program, "demo", "worker"], {
      cwd,
      env,
      stdio: ["pipe", "pipe", "pipe"],
      windowsHide: true,
    });
    this.#process = child;
    this.pid = child.pid ?? null;
    child.stdin.on("error", () => {});
    this.#closed = this.#listen(child);
    const whole: Briefing = { ...briefing, name, agentId, sessionId: `run-${this.#runs}`, cwd };
    child.stdin.write(`${JSON.stringify(whole)}\n`);
  }

  get closed(): Promise<void> {
    return this.#closed;
  }

  /** Resolves when the worker says that it is done. */
  order(body: OrderBody, onQueued: () => void = () => {}): Promise<Done> {
    const id = ++this.#orders;
    const done = new Promise<Done>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject, onQueued });
      this.#process?.stdin?.write(`${JSON.stringify({ ...body, id })}\n`);
    });
    return within(ORDER_MS, `${this.name}: ${body.order}`, done);
  }

  kill(): void {
    this.#wasKilled = true;
    this.#process?.kill("SIGKILL");
  }

  stop(): void {
    this.state = "stopped";
    this.#process?.kill("SIGSTOP");
  }

  goOn(): void {
    this.state = "up";
    this.#process?.kill("SIGCONT");
  }

  /** Finishes what it is at, gives back what it holds, and goes. */
  finish(): void {
    if (this.state === "stopped") this.goOn();
    this.state = "gone";
    this.#process?.stdin?.write(`${JSON.stringify({ order: "finish", id: ++this.#orders })}\n`);
  }

  #listen(child: ChildProcess): Promise<void> {
    let rest = "";
    let complaint = "";
    child.stdout!.setEncoding("utf8").on("data", (chunk: string) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop()!;
      for (const line of lines) this.#hear(JSON.parse(line) as Report);
    });
    child.stderr!.setEncoding("utf8").on("data", (chunk: string) => {
      complaint = (complaint + chunk).slice(-2_000);
    });
    return new Promise((resolve) => {
      child.on("error", (error) => this.#listener.failed(this, error.message));
      child.on("close", (status, signal) => {
        this.#end(
          child,
          `it ended with ${signal ?? status}${complaint === "" ? "" : `: ${complaint.trim()}`}`,
        );
        resolve();
      });
    });
  }

  #hear(report: Report): void {
    if (report.say === "asks") this.#asking = true;
    if (["granted", "refused", "renewed", "released", "transferred", "lost"].includes(report.say))
      this.#asking = false;
    if (report.say === "now") this.doing = { what: report.doing, keys: report.keys };
    if (report.say === "ready") {
      this.worktreeId = report.worktreeId;
      if (this.state === "starting") this.state = "up";
      this.#isReady();
    }
    // First the books: whoever waits for the answer finds them up to date.
    this.#listener.heard(this, report);
    if (report.say === "queued" && report.id !== null) this.#pending.get(report.id)?.onQueued();
    if (report.say === "done") {
      this.#pending.get(report.id)?.resolve({ outcome: report.outcome, leases: report.leases });
      this.#pending.delete(report.id);
    }
  }

  #end(child: ChildProcess, story: string): void {
    const wanted = this.#wasKilled || (this.state === "gone" && child.exitCode === 0);
    this.state = this.state === "gone" ? "gone" : "dead";
    if (!wanted) this.#listener.failed(this, story);
    for (const { reject } of this.#pending.values()) reject(new Error(`${this.name} is gone`));
    this.#pending.clear();
    this.#process = null;
    const pid = child.pid ?? 0;
    this.pid = null;
    this.#listener.ended(this, pid, { killed: this.#wasKilled, asking: this.#asking });
  }
}
