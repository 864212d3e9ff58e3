import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { HarnessName } from "../../../identity/harness";
import type { Git } from "../../../platform/git";
import { nothingToSay } from "../../guard/answers";
import { HARNESSES, type Moment } from "../../guard/harness";
import { type Call, callsIn } from "../calls";
import {
  type CanaryReport,
  type Coverage,
  freeTrial,
  nothingCovered,
  type Trial,
  trialsFor,
  type Way,
} from "../coverage";
import { eventFor, isDenial } from "../events";
import type { Found } from "../plan";
import { type Ended, endOf } from "./scratch-repository";

const HELD = "held.txt";
const HOLDER = "agent:canary-holder";
const PATIENCE_MS = 30_000;
const LOOKS = 6;
const BETWEEN_LOOKS_MS = 1_500;
const VIOLATED = '"event_type":"guard.violated"';

/** The machine that a session is played on. `env` is for what the command lines are to see besides. */
export interface CanaryMachine {
  readonly program: string;
  readonly git: Git;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Plays a session of the harness in a scratch repository, through the command lines that are installed: a free file must
 * go through in silence, a file that somebody else holds must not. The project itself is not touched.
 */
export async function runCanary(found: Found, machine: CanaryMachine): Promise<CanaryReport> {
  const room = mkdtempSync(join(tmpdir(), "cotenant-canary-"));
  try {
    return await new Canary(found, machine, room).fly();
  } finally {
    rmSync(room, { recursive: true, force: true });
  }
}

class Canary {
  readonly #found: Found;
  readonly #machine: CanaryMachine;
  readonly #room: string;
  readonly #calls: readonly Call[];
  readonly #coverage: Record<Way, Coverage> = nothingCovered();
  readonly #session: string;

  constructor(found: Found, machine: CanaryMachine, room: string) {
    this.#found = found;
    this.#machine = machine;
    this.#room = room;
    this.#calls = callsIn(found);
    this.#session = `canary-${process.pid}-${found.site.harness}`;
  }

  get #harness(): HarnessName {
    return this.#found.site.harness;
  }

  async fly(): Promise<CanaryReport> {
    const problem = await this.#prepare();
    if (problem !== null) return this.#report(problem);
    // As a person would begin: from here on it is known which process the session is of.
    if (this.#calls.some(({ http }) => http !== null)) await this.#send("prompt", null);
    const free = await this.#send("before", freeTrial(this.#harness, this.#room));
    if (free === null) return this.#report("no call of ours is there for tools that write");
    if (isDenial(this.#harness, free.status, free.stdout, free.stderr))
      return this.#report(`a file that nobody holds is refused: ${firstLine(free)}`);
    if (free.status !== 0) return this.#report(`the command ends with ${free.status}: ${firstLine(free)}`);
    if (free.stdout !== nothingToSay(this.#harness).stdout)
      return this.#report(`on an ordinary write it prints ${firstLine(free)}`);
    for (const trial of trialsFor(this.#harness, { repository: this.#room, held: HELD })) {
      this.#coverage[trial.way] = await this.#cover(trial);
      if (this.#coverage.edit !== "before")
        return this.#report("an edit of a file that somebody else holds is not refused");
    }
    await this.#send("end", null);
    return this.#report(null);
  }

  #report(why: string | null): CanaryReport {
    return { isAlive: why === null, why, coverage: this.#coverage };
  }

  /** A repository in which somebody holds a file. */
  async #prepare(): Promise<string | null> {
    writeFileSync(join(this.#room, HELD), "old\n");
    writeFileSync(join(this.#room, "free.txt"), "old\n");
    writeFileSync(join(this.#room, "change.sh"), `date +%s%N >> ${HELD}\n`);
    const { git, program } = this.#machine;
    for (const args of [
      ["init", "--quiet"],
      ["add", "--all"],
      [...WHO, "commit", "--quiet", "--message", "canary"],
    ]) {
      const { status, stderr } = await git.run(args, { cwd: this.#room });
      if (status !== 0) return `no scratch repository: git ${args[0]} says ${stderr.trim().slice(0, 200)}`;
    }
    for (const args of [
      ["init", "--quiet"],
      ["lock", "acquire", HELD, "--quiet"],
    ]) {
      const ran = await start(process.execPath, [program, ...args], this.#room, this.#env(HOLDER), "");
      if (ran.status !== 0) return `no scratch repository: cotenant ${args[0]} says ${firstLine(ran)}`;
    }
    return null;
  }

  async #cover(trial: Trial): Promise<Coverage> {
    const asked = await this.#send("before", trial);
    if (asked !== null && isDenial(this.#harness, asked.status, asked.stdout, asked.stderr)) return "before";
    // Let through: it happens, and then somebody should notice. Not at once: what a holder was given leave for a moment
    // ago could be its own doing.
    for (let i = 0; i < (trial.way === "script" ? LOOKS : 1); i++) {
      if (i > 0) {
        await new Promise((resolve) => setTimeout(resolve, BETWEEN_LOOKS_MS));
        await this.#send("before", trial);
      }
      const seen = this.#violations();
      writeFileSync(join(this.#room, HELD), `${trial.way} ${i}\n`);
      const told = await this.#send("after", trial);
      if (told === null) return "open";
      if (this.#violations() > seen || told.stdout.includes(HOLDER)) return "after";
    }
    return "open";
  }

  #violations(): number {
    const log = readFileSync(join(this.#room, ".git/cotenant/claims.jsonl"), "utf8");
    return log.split(VIOLATED).length - 1;
  }

  /** Through whatever is installed for that event and tool; null where nothing is. */
  async #send(moment: Moment, trial: Trial | null): Promise<Ended | null> {
    const scene = { harness: this.#harness, session: this.#session, repository: this.#room, at: Date.now() };
    const event = eventFor(scene, moment, trial);
    if (this.#found.site.format === "plugin") return this.#throughPlugin(moment, trial);
    const name = HARNESSES[this.#harness].events.find((one) => one.moment === moment)?.name;
    const call = this.#calls.find(
      ({ event: one, matcher }) =>
        one === name && (trial === null || matcher === null || fits(matcher, trial.tool)),
    );
    if (call === undefined) return null;
    if (call.http !== null) return post(call.http, JSON.stringify(event));
    const [file, args] = call.args === null ? ["/bin/sh", ["-c", call.command]] : [call.command, call.args];
    return start(file, args, this.#room, this.#env(undefined), JSON.stringify(event));
  }

  /** The plugin itself, loaded as the harness would. */
  #throughPlugin(moment: Moment, trial: Trial | null): Promise<Ended> {
    const url = pathToFileURL(this.#found.file.path).href;
    const program = `
      const { url, session, moment, trial } = JSON.parse(process.env.COTENANT_CANARY);
      try {${this.#harness === "pi" ? AS_PI : AS_OPENCODE}} catch (error) {
        process.stderr.write(error.message);
        process.exitCode = 2;
      }`;
    const about = { url, session: this.#session, moment, trial };
    const env = { ...this.#env(undefined), COTENANT_CANARY: JSON.stringify(about) };
    return start(process.execPath, ["--input-type=module", "--eval", program], this.#room, env, "");
  }

  #env(agent: string | undefined): NodeJS.ProcessEnv {
    const { COTENANT_SESSION_ID: _, COTENANT_AGENT_ID: __, ...env } = process.env;
    return {
      ...env,
      ...(agent === undefined ? {} : { COTENANT_AGENT_ID: agent }),
      // Nobody has three minutes for this.
      COTENANT_GUARD_RETRY_SECS: "1",
      COTENANT_DAEMON_AUTOSTART: "false",
      ...this.#machine.env,
    };
  }
}

const AS_OPENCODE = `
  const { Cotenant } = await import(url);
  const plugin = await Cotenant({ directory: process.cwd() });
  const input = { tool: trial?.tool, sessionID: session, callID: "canary", args: trial?.input };
  const output = { args: trial?.input, output: "" };
  if (moment === "before") await plugin["tool.execute.before"](input, output);
  else if (moment === "after") await plugin["tool.execute.after"](input, output);
  else await plugin.event({ event: { type: "session.deleted", properties: { info: { id: session } } } });
  process.stdout.write(output.output);`;

const AS_PI = `
  const handlers = {};
  (await import(url)).default({ on: (name, handler) => (handlers[name] = handler) });
  const names = { before: "tool_call", after: "tool_result", end: "session_shutdown" };
  const event = { toolName: trial?.tool, toolCallId: "canary", input: trial?.input, content: [] };
  const context = { cwd: process.cwd(), sessionManager: { getSessionId: () => session } };
  const said = await handlers[names[moment]](event, context);
  if (said?.block) throw new Error(said.reason);
  process.stdout.write((said?.content ?? []).map(({ text }) => text).join("\\n"));`;

const WHO = ["-c", "user.name=cotenant", "-c", "user.email=canary@cotenant.invalid"];

/** Matchers are patterns for the whole name, or lists of names. */
function fits(matcher: string, tool: string): boolean {
  try {
    return new RegExp(`^(?:${matcher})$`).test(tool);
  } catch {
    return false;
  }
}

/** As a harness asks over HTTP: what is no answer is a failure. */
async function post({ url, headers }: NonNullable<Call["http"]>, body: string): Promise<Ended> {
  try {
    const sent = { "Content-Type": "application/json", ...headers };
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const response = await fetch(url, { method: "POST", headers: sent, body, signal });
    const text = await response.text();
    if (response.ok) return { status: 0, stdout: text.trimStart(), stderr: "" };
    return { status: 1, stdout: "", stderr: `HTTP ${response.status}: ${text}` };
  } catch (error) {
    const { message, cause } = error as Error & { cause?: { code?: unknown } };
    return { status: 1, stdout: "", stderr: `${url}: ${cause?.code ?? message}` };
  }
}

function firstLine({ stdout, stderr }: Ended): string {
  return (stderr.trim() || stdout.trim() || "nothing").split("\n")[0]!.slice(0, 200);
}

function start(
  file: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
  input: string,
): Promise<Ended> {
  const child = spawn(file, args, { cwd, env, timeout: PATIENCE_MS, killSignal: "SIGKILL" });
  // It may end without having read it.
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  return endOf(child).catch((error: Error) => ({ status: null, stdout: "", stderr: error.message }));
}
