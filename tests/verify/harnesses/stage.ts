import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as nap } from "node:timers/promises";
import { ROOT } from "../bundle";
import type { Conversation, Script, Talk } from "./conversation";
import type { ModelServer } from "./model-server";
import { startModelServer } from "./model-server";
import type { AgentProgram, Installed, Scene } from "./program";
import type { Json } from "./wire/wire";

/** On a busy machine everything takes its time; whoever needs longer than this hangs. */
const MOST_MS = 240_000;
const POLL_MS = 100;

export const CONTENT = "one\ntwo\nthree\n";
/** Somebody who holds files and does nothing else. */
export const OTHER = "agent:other";
const PERSON = "human:owner";
const BIN = join(ROOT, "bin");

export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface StageOptions {
  /** `guard.retry_secs`. More than a hook may wait: a refusal comes at once. */
  readonly retrySecs: number;
  readonly isInstalled?: boolean;
  readonly hasGitHooks?: boolean;
}

export const AT_ONCE: StageOptions = { retrySecs: 3600 };

/** A program with an empty home, a repository with cotenant in it, and a scripted model. */
export class Stage implements Scene {
  readonly program: AgentProgram;
  readonly installed: Installed;
  readonly home: string;
  readonly repo: string;
  readonly port: number;
  readonly #server: ModelServer;
  readonly #sessions: Session[] = [];

  private constructor(
    program: AgentProgram,
    installed: Installed,
    { home, repo }: { readonly home: string; readonly repo: string },
    server: ModelServer,
  ) {
    this.program = program;
    this.installed = installed;
    this.home = home;
    this.repo = repo;
    this.port = server.port;
    this.#server = server;
  }

  /** `room` is the program's own; its home there is as the stage before left it, the repository is new. */
  static async set(
    program: AgentProgram,
    installed: Installed,
    room: string,
    { retrySecs, isInstalled = true, hasGitHooks = false }: StageOptions,
  ): Promise<Stage> {
    const [home, repo] = [join(room, "home"), join(room, "repo")];
    rmSync(repo, { recursive: true, force: true });
    mkdirSync(home, { recursive: true });
    mkdirSync(repo);
    const server = await (program.serve?.(installed) ?? startModelServer());
    const stage = new Stage(program, installed, { home, repo }, server);
    try {
      await stage.git("init", "-q", "-b", "main");
      // In the repository: some programs hide a person's own settings from Git.
      await stage.git("config", "user.name", "Owner");
      await stage.git("config", "user.email", "owner@example.invalid");
      for (const name of ["w", "x", "y", "z"]) stage.write(`${name}.txt`, CONTENT);
      await stage.git("add", "-A");
      await stage.git("commit", "-qm", "first");
      await stage.cotenant(["init", ...(hasGitHooks ? ["--hooks"] : [])]);
      await stage.cotenant(["config", "set", "guard.retry_secs", String(retrySecs)], PERSON);
      if (isInstalled) await stage.cotenant(["agent", "install", program.harness]);
      await stage.git("add", "-A");
      await stage.git("commit", "-qm", "cotenant", "--no-verify");
      program.prepare(stage);
      return stage;
    } catch (error) {
      stage.clear();
      throw error;
    }
  }

  /** Nothing of this machine, of its user or of whatever runs these tests. */
  get env(): Record<string, string> {
    return {
      PATH: [BIN, dirname(process.execPath), "/usr/bin", "/bin"].join(":"),
      HOME: this.home,
      TERM: "dumb",
      LANG: "C.UTF-8",
    };
  }

  file(name: string): string {
    return join(this.repo, name);
  }

  read(name: string): string | null {
    try {
      return readFileSync(this.file(name), "utf8");
    } catch {
      return null;
    }
  }

  write(name: string, content: string, mode = 0o644): void {
    mkdirSync(dirname(this.file(name)), { recursive: true });
    writeFileSync(this.file(name), content, { mode });
  }

  git(...args: string[]): Promise<Ended> {
    return this.#run("git", args, {});
  }

  async cotenant(args: readonly string[], as: string | null = null): Promise<Ended> {
    const ended = await this.try(args, as);
    if (ended.status !== 0)
      throw new Error(`cotenant ${args.join(" ")}: exit ${ended.status}: ${ended.stderr || ended.stdout}`);
    return ended;
  }

  try(args: readonly string[], as: string | null = null): Promise<Ended> {
    return this.#run(join(BIN, "cotenant"), args, as === null ? {} : { COTENANT_AGENT_ID: as });
  }

  async json(args: readonly string[]): Promise<Json> {
    const { stdout, stderr } = await this.try([...args, "--json"]);
    try {
      return JSON.parse(stdout).data;
    } catch {
      throw new Error(`cotenant ${args.join(" ")} printed no JSON: ${stdout}${stderr}`);
    }
  }

  /** Who holds a file, and the process that the lease is bound to. */
  async holderOf(name: string): Promise<{ readonly agent: string; readonly pid: number } | null> {
    const { leases } = await this.json(["lock", "status"]);
    const lease = leases.find(({ key }: Json) => key === `file:${name}`);
    return lease === undefined ? null : { agent: lease.agent_id, pid: lease.holder.pid };
  }

  async events(type: RegExp): Promise<Json[]> {
    const { stdout } = await this.cotenant(["events", "--json"]);
    const all = stdout.split("\n").filter((line) => line !== "");
    return all.map((line) => JSON.parse(line)).filter(({ event_type }) => type.test(event_type));
  }

  /** Others who write around the guard, by the file that they changed. */
  async violations(): Promise<string[]> {
    const events = await this.events(/^guard\.violated$/);
    return events.flatMap(({ payload }) => payload.files.map(({ path }: Json) => path));
  }

  hold(name: string): Promise<Ended> {
    return this.cotenant(["lock", "acquire", name], OTHER);
  }

  release(name: string): Promise<Ended> {
    return this.cotenant(["lock", "release", name], OTHER);
  }

  /** Whether somebody else can have a file, now or soon. */
  async isFree(name: string): Promise<boolean> {
    const isMine = async () => (await this.try(["lock", "acquire", name], OTHER)).status === 0;
    const isFree = await until(isMine, FREE_MS);
    if (isFree) await this.release(name);
    return isFree;
  }

  /** Has the program play a script, and a subagent of it another one. */
  open(script: Script): { readonly conversation: Conversation; readonly mention: string } {
    return this.#server.open(script);
  }

  play(script: Script, isTrusting = true): Session {
    const { conversation, mention } = this.#server.open(script);
    const { command, args, env } = this.program.start(this, mention, isTrusting);
    const session = new Session(this, conversation, { command, args, env: { ...this.env, ...env } });
    this.#sessions.push(session);
    return session;
  }

  /** The whole of a session that nothing has to be done beside. */
  async playThrough(script: Script, isTrusting = true): Promise<Session> {
    const session = this.play(script, isTrusting);
    await session.finish();
    return session;
  }

  edit(talk: Talk, name: string, from: string, to: string): Promise<string> {
    return this.program.tools.edit(talk, this.file(name), from, to);
  }

  shell(talk: Talk, command: string): Promise<string> {
    return talk.use(this.program.tools.shell(command, this));
  }

  clear(): void {
    for (const session of this.#sessions) session.kill();
    this.#server.close();
    killAllWithHome(this.home);
  }

  #run(command: string, args: readonly string[], env: Record<string, string>): Promise<Ended> {
    const child = spawn(command, args, {
      cwd: this.repo,
      env: { ...this.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: MOST_MS,
      killSignal: "SIGKILL",
    });
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    return new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (status) => resolve({ status, stdout, stderr }));
    });
  }
}

/** What dies frees its files at once; what ends does so a moment later. */
const FREE_MS = 20_000;

let sessions = 0;

/** One run of the program, from its prompt to its end. */
export class Session {
  readonly #child: ChildProcess;
  readonly #conversation: Conversation;
  readonly #outputFile: string;
  readonly #exited: Promise<void>;

  constructor(
    { home, repo }: Scene,
    conversation: Conversation,
    { command, args, env }: { command: string; args: readonly string[]; env: Record<string, string> },
  ) {
    this.#conversation = conversation;
    this.#outputFile = join(dirname(home), `output-${++sessions}.txt`);
    const output = openSync(this.#outputFile, "w");
    this.#child = spawn(command, args, {
      cwd: repo,
      env,
      // In the group of the layer: whoever ends that ends this, too.
      stdio: ["ignore", output, output],
    });
    closeSync(output);
    this.#exited = new Promise((resolve) => {
      this.#child.on("error", (error) => {
        conversation.hangUp(error.message);
        resolve();
      });
      this.#child.on("exit", (status, signal) => {
        conversation.hangUp(`${signal ?? `exit ${status}`}, printed: ${this.output.slice(-400).trim()}`);
        resolve();
      });
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get output(): string {
    return readFileSync(this.#outputFile, "utf8");
  }

  /** Waits for the script and for the program's end; what the script throws is thrown. */
  async finish(): Promise<void> {
    try {
      await within(this.#conversation.ended, "the script did not end");
      await within(this.#exited, "the program did not end");
    } catch (error) {
      if (error instanceof Late) error.message += `; the program printed: ${this.output.slice(-600)}`;
      throw error;
    } finally {
      this.kill();
    }
  }

  /** Throws once the program has ended or its script has failed: for whoever waits for something else meanwhile. */
  async failed(): Promise<never> {
    await within(Promise.race([this.#conversation.ended, this.#exited]), "nothing happened");
    throw new Error(`the program ended too early, and printed: ${this.output.slice(-400).trim()}`);
  }

  /** Only the process that was started, as the system does it when memory is short. */
  async killAlone(): Promise<void> {
    process.kill(this.pid, "SIGKILL");
    await within(this.#exited, "the program did not die");
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }
}

export class Late extends Error {}

export async function within<T>(promise: Promise<T>, what: string, mostMs = MOST_MS): Promise<T> {
  const late = new AbortController();
  try {
    return await Promise.race([
      promise,
      nap(mostMs, undefined, { signal: late.signal }).then(() => {
        throw new Late(`${what} within ${mostMs / 1000} s`);
      }),
    ]);
  } finally {
    late.abort();
  }
}

/** Whether a condition came true in time. */
export async function until(condition: () => Promise<boolean> | boolean, mostMs = MOST_MS): Promise<boolean> {
  for (const endMs = performance.now() + mostMs; ; ) {
    if (await condition()) return true;
    if (performance.now() >= endMs) return false;
    await nap(POLL_MS);
  }
}

/** Workers outlive their launcher, and background commands their shell. Their home tells whose they are. */
export function killAllWithHome(home: string): void {
  if (process.platform !== "linux") return;
  for (const name of readdirSync("/proc").filter((one) => /^\d+$/.test(one))) {
    try {
      const isOurs = readFileSync(`/proc/${name}/environ`, "utf8").split("\0").includes(`HOME=${home}`);
      if (isOurs) process.kill(Number(name), "SIGKILL");
    } catch {
      // It has ended, or is somebody else's.
    }
  }
}
