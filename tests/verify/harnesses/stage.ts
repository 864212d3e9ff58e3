import { mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Conversation, Script, Talk } from "../../../src/features/harnesses/real-canary/conversation";
import { cameTrue } from "../../../src/features/harnesses/real-canary/deadline";
import { type ModelServer, startModelServer } from "../../../src/features/harnesses/real-canary/model-server";
import { ProgramRun } from "../../../src/features/harnesses/real-canary/program-run";
import { killAllWithHome } from "../../../src/features/harnesses/real-canary/room";
import { ScratchRepository } from "../../../src/features/harnesses/real-canary/scratch-repository";
import type { Json } from "../../../src/features/harnesses/real-canary/wire/wire";
import { ROOT } from "../bundle";
import type { AgentProgram, Installed, StageScene } from "./program";

export { CONTENT, OTHER } from "../../../src/features/harnesses/real-canary/scratch-repository";

/** On a busy machine everything takes its time; whoever needs longer than this hangs. */
export const MOST_MS = 240_000;
export const BIN = join(ROOT, "bin");

export interface StageOptions {
  /** `guard.retry_secs`. More than a hook may wait: a refusal comes at once. */
  readonly retrySecs: number;
  readonly isInstalled?: boolean;
  readonly hasGitHooks?: boolean;
}

export const AT_ONCE: StageOptions = { retrySecs: 3600 };

/** A program with an empty home, a repository with cotenant in it, and a scripted model. */
export class Stage extends ScratchRepository implements StageScene {
  readonly program: AgentProgram;
  readonly installed: Installed;
  readonly port: number;
  readonly #server: ModelServer;
  readonly #sessions: ProgramRun[] = [];

  private constructor(
    program: AgentProgram,
    installed: Installed,
    { home, repo }: { readonly home: string; readonly repo: string },
    server: ModelServer,
  ) {
    super({ home, repo, env: environmentWith(home), cotenant: [join(BIN, "cotenant")], mostMs: MOST_MS });
    this.program = program;
    this.installed = installed;
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
      const install = async () => {
        await stage.cotenant(["agent", "install", program.harness, ...viaGiven()]);
        if (viaGiven().length > 0) await stage.cotenant(["daemon", "start"]);
      };
      await stage.fill({ retrySecs, install: isInstalled ? install : null, hasGitHooks });
      program.prepare(stage);
      return stage;
    } catch (error) {
      stage.clear();
      throw error;
    }
  }

  /** Others who write around the guard, by the file that they changed. */
  async violations(): Promise<string[]> {
    const events = await this.events(/^guard\.violated$/);
    return events.flatMap(({ payload }) => payload.files.map(({ path }: Json) => path));
  }

  /** Has the program play a script, and a subagent of it another one. */
  open(script: Script): { readonly conversation: Conversation; readonly mention: string } {
    return this.#server.open(script);
  }

  play(script: Script, isTrusting = true): ProgramRun {
    const { conversation, mention } = this.#server.open(script);
    const [command = "", ...first] = this.program.launcher(this.installed);
    const { args, env } = this.program.start(this, mention, isTrusting);
    const launch = {
      command,
      args: [...first, ...args],
      cwd: this.repo,
      env: { ...this.env, ...env },
      outputFile: join(dirname(this.home), `output-${++sessions}.txt`),
      isOwnGroup: false,
    };
    const session = new ProgramRun(launch, conversation, MOST_MS);
    this.#sessions.push(session);
    return session;
  }

  /** The whole of a session that nothing has to be done beside. */
  async playThrough(script: Script, isTrusting = true): Promise<ProgramRun> {
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
}

/** `TEST_VIA=daemon` or `http` has all of it go by way of the daemon. */
export function viaGiven(): string[] {
  const via = process.env["TEST_VIA"] ?? "";
  return via === "" ? [] : ["--via", via];
}

/** Nothing of this machine, of its user or of whatever runs these tests. */
function environmentWith(home: string): Record<string, string> {
  return {
    PATH: [BIN, dirname(process.execPath), "/usr/bin", "/bin"].join(":"),
    HOME: home,
    TERM: "dumb",
    LANG: "C.UTF-8",
  };
}

let sessions = 0;

export function until(condition: () => Promise<boolean> | boolean, mostMs = MOST_MS): Promise<boolean> {
  return cameTrue(condition, mostMs);
}
