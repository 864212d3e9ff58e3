import { type ChildProcess, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { Platform } from "../../src/platform/platform";
import { afterEveryTest } from "./after-tests";
import { listeningTerminal } from "./listening-terminal";
import { checkPrinted } from "./schemas";
// Its clean-up must be registered before ours: the last registered runs first, and processes end before their files.
import "./scratch";

/** What users run. `npm test` builds the bundle behind it first. */
export const PROGRAM = fileURLToPath(new URL("../../bin/cotenant", import.meta.url));

/** No command of a test takes longer, on a busy machine either. Less than that would find nothing that this does not. */
const MOST_MS = 120_000;

export interface LeaseJson {
  readonly lease_id: string;
  readonly key: string;
  readonly agent_id: string;
  readonly session_id: string;
  readonly worktree_id: string;
  readonly branch: string | null;
  readonly ttl_secs: number;
  readonly acquired_at: string;
  readonly renewed_at: string;
  readonly expires_at: string | null;
  readonly last_beat: string;
  readonly max_total_secs: number | null;
  readonly fencing_token: number;
  readonly reason: string | null;
  readonly bind: string;
  readonly reach: string;
  readonly issue_id?: string;
  readonly stole_from: readonly {
    readonly lease_id: string;
    readonly agent_id: string;
    readonly why: string;
  }[];
  readonly indefinite: boolean;
  readonly stale?: boolean;
}

/** The fields of `data` that tests look at; a command has the ones that belong to it. */
export interface Data {
  readonly [field: string]: unknown;
  readonly lease: LeaseJson;
  readonly leases: readonly LeaseJson[];
  readonly changed: boolean;
  readonly replayed: boolean;
  readonly secret: string;
  readonly issue: { readonly id: string; readonly short_id: string; readonly title: string };
  readonly worktree: { readonly worktree_id: string; readonly root: string };
  readonly worktrees: readonly {
    readonly worktree_id: string;
    readonly root: string;
    readonly leases: number;
  }[];
}

export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  readonly data: Readonly<Record<string, unknown>> & {
    readonly holders?: readonly { readonly agent_id: string; readonly expires_at: string | null }[];
  };
}

/** How a process ended. */
export class Ran {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly what: string;

  constructor(what: string, status: number | null, stdout: string, stderr: string) {
    this.what = what;
    this.status = status;
    this.stdout = stdout;
    this.stderr = stderr;
  }

  /** Standard output as exactly one JSON document. */
  get json(): { ok: boolean; data?: Data; error?: Failure; warnings?: string[] } {
    try {
      return JSON.parse(this.stdout);
    } catch {
      throw new Error(`not one JSON document: ${this}`);
    }
  }

  /** What a successful command answered. */
  get data(): Data {
    if (this.status !== 0 || !this.json.ok) throw new Error(`expected success: ${this}`);
    return this.json.data!;
  }

  get lease(): LeaseJson {
    return this.data.lease;
  }

  /** Why a command with `--json` refused. */
  get error(): Failure {
    if (this.status === 0 || this.json.ok) throw new Error(`expected a refusal: ${this}`);
    return this.json.error!;
  }

  toString(): string {
    return `${this.what}\n  exit ${this.status}\n  stdout: ${this.stdout}\n  stderr: ${this.stderr}`;
  }
}

/** A process that runs while the test goes on. */
export class Running {
  readonly done: Promise<Ran>;
  readonly #child: ChildProcess;
  #stdout = "";
  #stderr = "";

  constructor(command: readonly string[], child: ChildProcess, mostMs = MOST_MS) {
    this.#child = child;
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#stdout += text;
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
    });
    const watchdog = setTimeout(() => this.kill("SIGKILL"), mostMs);
    this.done = new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (status) => {
        clearTimeout(watchdog);
        alive.delete(this);
        const ran = new Ran(command.join(" "), status, this.#stdout, this.#stderr);
        checked(command, ran).then(resolve, (error: unknown) => {
          reject(new Error(`${ran}\n${(error as Error).message}`));
        });
      });
    });
    alive.add(this);
  }

  get pid(): number {
    return this.#child.pid!;
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Lets a process that was started with `held` go on. */
  go(): void {
    this.#child.stdin!.end("\n");
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }
}

interface SettingHere extends Setting {
  readonly home: string;
  /** How much later it is for this command: no test need wait for a lease's end, or hurry to be there before it. */
  readonly aheadSecs?: number;
}

let lastHere: Promise<unknown> = Promise.resolve();
let underWayHere = 0;

/**
 * The whole program but its process, which takes most of the time: for tests of what commands do, not of how they start.
 * The machine, its disk and Git are the real ones. One after the other, for this process is in one directory at a time.
 */
export function runHere(args: readonly string[], setting: SettingHere): Promise<Ran> {
  // Unit tests that run alone have only what was built, and no clock of their own with it.
  if (process.env["TEST_WHOLE_PROGRAM"] === undefined && (setting.aheadSecs ?? 0) === 0)
    return run([PROGRAM, ...args], { ...setting, env: { HOME: setting.home, ...setting.env } });
  underWayHere++;
  const ran = lastHere.then(() => runNow(args, setting)).finally(() => underWayHere--);
  lastHere = ran.catch(() => {});
  return ran;
}

/** Of the environment, what a command takes from where it is told, and not from its process. */
const TOLD = new Set(["COTENANT_AGENT_ID", "COTENANT_SESSION_ID", "COTENANT_SYNC_LEDGER_BRANCH", "HOME"]);
/** Who reads standard input, starts programs of others, follows something, or looks at its own process and parents. */
const NEEDS_PROCESS = new Set(["exec", "hook", "guard", "demo", "events", "agent", "completion", "version"]);
const WAITS = new Set(["--wait", "--watch", "--follow", "--stdin", "-", "--"]);

/**
 * A command that a test waits for, by a process of its own only where that can matter. One is run here at a time: whoever
 * comes meanwhile gets a process and contends with it. `npm run verify` sets TEST_PROCESSES, too: always as a process.
 */
export function runCheaply(args: readonly string[], setting: Setting): Promise<Ran> {
  const env = setting.env ?? {};
  const isPlain =
    Object.keys(env).every((name) => TOLD.has(name)) &&
    !NEEDS_PROCESS.has(args[0] ?? "") &&
    !args.some((word) => WAITS.has(word));
  const isSpared = process.env["TEST_PROCESSES"] === undefined;
  const mayBeHere = isSpared && process.env["TEST_WHOLE_PROGRAM"] !== undefined && underWayHere === 0;
  if (!isPlain || !mayBeHere) return run([PROGRAM, ...args], setting);
  return runHere(args, { ...setting, home: env["HOME"] ?? process.env["HOME"]! });
}

async function runNow(args: readonly string[], setting: SettingHere): Promise<Ran> {
  const { runCommandLine, thisMachine } = wholeProgram();
  // What a command takes itself for.
  process.argv[1] = PROGRAM;
  const { terminal, heard } = listeningTerminal();
  const { cwd, home } = setting;
  const env = { ...process.env, ...setting.env };
  const surroundings = () => {
    const machine = thisMachine();
    const platform = shifted(machine.platform, setting.aheadSecs ?? 0);
    return { ...machine, platform, env, cwd, home, isTerminal: false };
  };
  const usual = process.cwd();
  process.chdir(cwd);
  const status = await runCommandLine(args, { terminal, surroundings }).finally(() => process.chdir(usual));
  return checked(
    [PROGRAM, ...args],
    new Ran([PROGRAM, ...args].join(" "), status, heard.stdout, heard.stderr),
  );
}

function shifted(platform: Platform, secs: number): Platform {
  const clock: Platform["clock"] = {
    wallMs: () => platform.clock.wallMs() + secs * 1_000,
    monotonicMs: () => platform.clock.monotonicMs() + secs * 1_000,
    clockId: () => platform.clock.clockId(),
  };
  return secs === 0 ? platform : { ...platform, clock };
}

function wholeProgram(): typeof import("./whole-program") {
  return createRequire(import.meta.url)(process.env["TEST_WHOLE_PROGRAM"]!);
}

/** Whatever the program says with --json, in any test, is of the shape that its published schema promises. */
/** Whatever a test looks at: documents have their shape, and hints can be followed. */
async function checked(command: readonly string[], ran: Ran): Promise<Ran> {
  checkShape(command, ran);
  const [program, ...args] = command;
  // Only end-to-end tests have it.
  if (process.env["TEST_WHOLE_PROGRAM"] === undefined) return ran;
  const wrong = await wholeProgram().wrongHintsIn(program === PROGRAM ? args : null, ran);
  if (wrong.length > 0) throw new Error(`hints that nobody can follow:\n  ${wrong.join("\n  ")}`);
  return ran;
}

function checkShape([program, ...all]: readonly string[], { status, stdout }: Ran): void {
  const args = all.includes("--") ? all.slice(0, all.indexOf("--")) : all;
  if (program === PROGRAM && args.includes("--json") && status !== null && stdout !== "")
    checkPrinted(args, stdout);
}

const alive = new Set<Running>();
afterEveryTest(async () => {
  for (const running of alive) running.kill("SIGKILL");
  await Promise.all([...alive].map(({ done }) => done));
});

export interface Setting {
  readonly cwd: string;
  /** Added to this process's environment; undefined takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The process waits for `go()` before it becomes the program. */
  readonly held?: boolean;
  /** For what waits for many others. */
  readonly mostMs?: number;
}

export function start(command: readonly string[], setting: Setting): Running {
  const env = { ...process.env, ...setting.env };
  const [file, ...args] = setting.held
    ? ["/bin/sh", "-c", 'read -r _; exec "$@" </dev/null', "sh", ...command]
    : command;
  const stdin = setting.held ? "pipe" : "ignore";
  const child = spawn(file!, args, { cwd: setting.cwd, env, stdio: [stdin, "pipe", "pipe"] });
  return new Running(command, child, setting.mostMs);
}

export function run(command: readonly string[], setting: Setting): Promise<Ran> {
  return start(command, setting).done;
}

/**
 * Looks again until there is something to see, neither `false` nor nothing; a fixed sleep would be too short on a busy
 * machine, and too long on others.
 */
export async function until<T extends {}>(
  what: string,
  look: () => Promise<T | false | null | undefined> | T | false | null | undefined,
  mostMs = 60_000,
): Promise<T> {
  const deadline = performance.now() + mostMs;
  for (;;) {
    const seen = await look();
    if (seen !== false && seen !== null && seen !== undefined) return seen;
    if (performance.now() > deadline) throw new Error(`waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
