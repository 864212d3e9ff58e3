import { join } from "node:path";
import type { ViaName } from "../command-line";
import type { RealOutcome } from "../coverage";
import { type Conversation, Hangup, type Talk } from "./conversation";
import { inTime, Late } from "./deadline";
import type { HeadlessProgram } from "./headless";
import { versionIn } from "./installed-program";
import { type ModelServer, startModelServer } from "./model-server";
import { OutsideProcess } from "./outside-process";
import { ProgramRun } from "./program-run";
import { clearRoom, makeRoom, type Room } from "./room";
import { CONTENT, OTHER, ScratchRepository } from "./scratch-repository";

/** A cotenant program, as settings name it. */
interface InstalledFrom {
  readonly node: string;
  readonly program: string;
}

export interface TrialSetting {
  /** The program of the person's, and how it is run. */
  readonly headless: HeadlessProgram;
  readonly program: string;
  /** A person's environment, of which the program gets to see little. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** This cotenant. */
  readonly cotenant: InstalledFrom;
  /** What wrote the person's settings: it writes the same lines once more. */
  readonly installer: InstalledFrom;
  /** Whether those lines look for cotenant on the PATH. */
  readonly isShared: boolean;
  /** How those lines get to the guard. */
  readonly via: ViaName;
  /** For the program, from its start to its end. */
  readonly limitMs: number;
  readonly interrupted: AbortSignal;
}

export interface TrialResult {
  readonly outcome: RealOutcome;
  readonly version: string | null;
  readonly why: string | null;
}

/** What was promised did not happen. */
class Broken extends Error {
  readonly outcome: RealOutcome;

  constructor(outcome: RealOutcome, why: string) {
    super(why);
    this.outcome = outcome;
  }
}

const VERSION_MS = 15_000;
/** For a command of Git or cotenant. */
const COMMAND_MS = 30_000;
/** More than a hook may wait: a refusal comes at once. */
const RETRY_SECS = 3600;
const [NEW, HELD] = ["new.txt", "x.txt"];
const WRITTEN = "hello\n";

/** Runs the program once, in a room of its own that is gone afterwards. */
export async function runTrial(setting: TrialSetting): Promise<TrialResult> {
  const room = makeRoom(setting.env);
  try {
    return await new Trial(setting, room).run();
  } finally {
    clearRoom(room);
  }
}

class Trial {
  readonly #setting: TrialSetting;
  readonly #room: Room;
  readonly #repository: ScratchRepository;
  readonly #startedMs = performance.now();
  #server: ModelServer | null = null;
  #conversation: Conversation | null = null;

  constructor(setting: TrialSetting, room: Room) {
    this.#setting = setting;
    this.#room = room;
    const { home, repo, env } = room;
    const { cotenant, interrupted } = setting;
    this.#repository = new ScratchRepository({
      home,
      repo,
      env,
      cotenant: [cotenant.node, cotenant.program],
      mostMs: COMMAND_MS,
      interrupted,
    });
  }

  async run(): Promise<TrialResult> {
    const version = await this.#version();
    try {
      await this.#prepare();
      this.#server = await startModelServer();
      await this.#play(this.#server);
      if (!(await this.#repository.isFree(NEW)))
        throw new Broken("failed", "the file that it wrote is still held though the program has ended");
      return { outcome: "passed", version, why: null };
    } catch (error) {
      return { version, ...this.#explained(error) };
    } finally {
      this.#server?.close();
    }
  }

  async #version(): Promise<string | null> {
    const asked = new OutsideProcess(this.#launch(["--version"], {}, "version.txt"));
    const stop = () => asked.kill();
    this.#setting.interrupted.addEventListener("abort", stop);
    try {
      await inTime(asked.exited, "no version", Math.min(VERSION_MS, this.#setting.limitMs));
      return versionIn(asked.output);
    } catch (error) {
      if (error instanceof Late) return null;
      throw error;
    } finally {
      this.#setting.interrupted.removeEventListener("abort", stop);
      await asked.end();
    }
  }

  async #prepare(): Promise<void> {
    const { headless, installer, isShared, via } = this.#setting;
    const install = async () => {
      const how = [...(isShared ? ["--shared"] : []), ...(via === "program" ? [] : ["--via", via])];
      const words = ["agent", "install", headless.harness, ...how];
      const { status, stderr } = await this.#repository.run(installer.node, [installer.program, ...words]);
      if (status !== 0) throw new Error(`cotenant ${words.join(" ")}: ${stderr.trim()}`);
    };
    await this.#repository.fill({ retrySecs: RETRY_SECS, install, hasGitHooks: false });
    await this.#repository.hold(HELD);
  }

  async #play(server: ModelServer): Promise<void> {
    const { headless, limitMs, interrupted } = this.#setting;
    const scene = { ...this.#room, port: server.port };
    headless.prepare(scene);
    const { conversation, mention } = server.open((talk) => this.#script(talk));
    this.#conversation = conversation;
    const { args, env } = headless.start(scene, mention, true);
    const restMs = Math.max(1_000, limitMs - (performance.now() - this.#startedMs));
    const run = new ProgramRun(this.#launch(args, env, "output.txt"), conversation, restMs);
    const stop = () => run.kill();
    interrupted.addEventListener("abort", stop);
    try {
      await run.finish();
    } finally {
      interrupted.removeEventListener("abort", stop);
    }
  }

  /** What the model does: a file that nobody holds, then one that somebody else holds. */
  async #script(talk: Talk): Promise<string> {
    const { headless } = this.#setting;
    const repository = this.#repository;
    const toldOfNew = await talk.use(headless.tools.write(repository.file(NEW), WRITTEN));
    if (repository.read(NEW) !== WRITTEN)
      throw new Broken(
        "failed",
        `a file that nobody holds was not written; the model was told: ${toldOfNew}`,
      );
    const holder = await repository.holderOf(NEW);
    if (holder === null) throw await this.#withoutLease();
    if (!holder.agent.startsWith(`agent:${headless.harness}-`))
      throw new Broken("failed", `the file that it wrote is held by ${holder.agent}`);
    const told = await headless.tools.edit(talk, repository.file(HELD), "two", "TWO");
    if (repository.read(HELD) !== CONTENT)
      throw new Broken("failed", "a file that somebody else holds was overwritten");
    if (!told.includes(OTHER))
      throw new Broken("failed", `the model was not told who holds the file, but: ${told}`);
    return "done";
  }

  /** A hook that was called has left something on record, whatever it answered. */
  async #withoutLease(): Promise<Broken> {
    const events = await this.#repository.events(/./);
    const isHeard = JSON.stringify(events).includes(`"agent:${this.#setting.headless.harness}-`);
    return isHeard
      ? new Broken("failed", "it wrote a file, and has no lease on it")
      : new Broken("protocol_changed", "it wrote a file, and called none of the hooks");
  }

  #explained(error: unknown): Pick<TrialResult, "outcome" | "why"> {
    if (error instanceof Broken) return { outcome: error.outcome, why: oneLine(error.message) };
    const words = oneLine(error instanceof Error ? error.message : String(error));
    const isAboutProgram = error instanceof Hangup || error instanceof Late;
    if (!isAboutProgram) return { outcome: "failed", why: `it could not be tried: ${words}` };
    if (this.#conversation?.isAsked !== false) return { outcome: "failed", why: words };
    const asked = this.#server?.misunderstood ?? [];
    const instead = asked.length === 0 ? "" : `, but sent ${asked.join(", ")}`;
    return { outcome: "protocol_changed", why: `it never asked the model${instead}: ${words}` };
  }

  #launch(args: readonly string[], more: Readonly<Record<string, string>>, outputFile: string) {
    const { folder, repo, env } = this.#room;
    return {
      command: this.#setting.program,
      args,
      cwd: repo,
      env: { ...env, ...more },
      outputFile: join(folder, outputFile),
      isOwnGroup: true,
    };
  }
}

const MOST_WORDS = 400;

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > MOST_WORDS ? `${line.slice(0, MOST_WORDS)}…` : line;
}
