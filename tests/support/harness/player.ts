import * as fs from "node:fs";
import * as path from "node:path";
import type { HarnessName } from "../../../src/identity/harness";
import { claude, codex, gemini, isShell, qwen } from "./claude-family";
import { changesOf, type Deed } from "./deeds";
import type { Dialect, Hook, Moment, Played, Stage, ToolCall, Verdict } from "./dialect";
import { cleanEnv, runHook } from "./hook-process";
import type { Journal } from "./journal";
import { OpencodePlugins } from "./opencode-plugins";
import { copilot, cursor, nameFor, opencode, pi } from "./others";

export const DIALECTS: Readonly<Record<HarnessName, Dialect>> = {
  claude,
  codex,
  cursor,
  gemini,
  copilot,
  opencode,
  qwen,
  pi,
};

/** How a deed went. */
export interface Outcome {
  readonly is: "done" | "denied";
  readonly reason: string;
  /** The harness gave the turn up. */
  readonly endsTurn: boolean;
  /** What hooks told the agent. */
  readonly told: readonly string[];
  /** Hooks that the harness took for broken. */
  readonly failures: readonly string[];
  /** Of the shell tool. */
  readonly output: string;
  /** How many hooks ran. */
  readonly hooks: number;
}

/** What was sent to a hook, for the corpora. */
export type Witness = (event: string, payload: object, isBorrowed: boolean) => void;

/** One session of one harness: it calls out as the real one does, in its order, and takes the answers as it does. */
export class Player {
  readonly #dialect: Dialect;
  readonly #stage: Stage;
  readonly #journal: Journal;
  readonly #witness: Witness;
  readonly #plugins: OpencodePlugins | null;
  #hooks: readonly Hook[] = [];
  #ran = 0;
  #told: string[] = [];
  #failures: string[] = [];

  constructor(harness: Played, stage: Stage, journal: Journal, witness: Witness = () => {}) {
    this.#dialect = DIALECTS[harness];
    this.#stage = stage;
    this.#journal = journal;
    this.#witness = witness;
    this.#plugins = harness === "opencode" ? new OpencodePlugins(stage) : null;
  }

  /** Settings are read once, at the start, as most harnesses do. */
  async start(): Promise<void> {
    this.#hooks = this.#dialect.hooks(this.#stage);
    await this.#plugins?.load();
    await this.#life("start", { at: "start" });
  }

  async prompt(prompt: string): Promise<void> {
    await this.#plugins?.prompt(prompt);
    await this.#life("prompt", { at: "prompt", prompt });
  }

  async stop(): Promise<void> {
    await this.#plugins?.event("session.idle");
    await this.#life("stop", { at: "stop" });
  }

  async stopSubagent(): Promise<void> {
    await this.#life("subagent-stop", { at: "subagent-stop" });
  }

  async end(): Promise<void> {
    await this.#plugins?.event("session.deleted");
    await this.#life("end", { at: "end" });
  }

  async act(deed: Deed): Promise<Outcome> {
    [this.#ran, this.#told, this.#failures] = [0, [], []];
    const call = this.#dialect.toolFor(deed, this.#stage);
    const { before, after } = this.#dialect.around(call);
    const refused = await this.#before(before, call);
    if (refused !== null) return this.#outcome("denied", refused, "");
    const output = await this.#carryOut(deed, call);
    for (const event of after) this.#take(await this.#fire(event, { at: "after", event, call, output }));
    const added = (await this.#plugins?.after(call, output)) ?? "";
    if (added !== "") this.#told.push(added);
    return this.#outcome("done", null, output);
  }

  async #before(events: readonly string[], call: ToolCall) {
    const thrown = await this.#plugins?.before(call);
    if (thrown != null) return { reason: thrown, endsTurn: false };
    for (const event of events) {
      const verdicts = await this.#fire(event, { at: "before", event, call });
      this.#take(verdicts);
      for (const verdict of verdicts) if (verdict.is === "denied") return verdict;
    }
    return null;
  }

  #outcome(
    is: Outcome["is"],
    refused: { readonly reason: string; readonly endsTurn: boolean } | null,
    output: string,
  ): Outcome {
    return {
      is,
      reason: refused?.reason ?? "",
      endsTurn: refused?.endsTurn ?? false,
      told: this.#told,
      failures: this.#failures,
      output,
      hooks: this.#ran + (this.#plugins?.calls ?? 0),
    };
  }

  #take(verdicts: readonly Verdict[]): void {
    for (const verdict of verdicts) {
      if (verdict.is === "allowed" && verdict.told !== null) this.#told.push(verdict.told);
      if (verdict.is === "failed") this.#failures.push(verdict.why);
    }
  }

  async #life(when: keyof Dialect["life"], moment: Moment): Promise<void> {
    for (const event of this.#dialect.life[when]) this.#take(await this.#fire(event, moment));
  }

  /** All hooks of an event at once, but each command line only once. */
  #fire(event: string, moment: Moment): Promise<Verdict[]> {
    const call = "call" in moment ? moment.call : null;
    const fitting = this.#hooks.filter(
      (hook) => nameFor(hook, event) === hook.event && (call === null || this.#dialect.fits(hook, call)),
    );
    const once = [...new Map(fitting.map((hook) => [`${hook.line}\0${hook.args}`, hook])).values()];
    return Promise.all(
      once.map(async (hook) => {
        this.#ran++;
        const payload = this.#dialect.payload(event, moment, this.#stage, hook);
        this.#witness(event, payload, hook.isBorrowed);
        const env = cleanEnv({ HOME: this.#stage.home, ...this.#dialect.hookEnv(this.#stage) });
        const end = await runHook(hook, payload, { cwd: this.#stage.root, env });
        return this.#dialect.verdict(hook, end);
      }),
    );
  }

  async #carryOut(deed: Deed, call: ToolCall): Promise<string> {
    const { root, home } = this.#stage;
    if (isShell(call)) {
      const env = cleanEnv({ HOME: home, ...this.#dialect.shellEnv(this.#stage) });
      const line = String(call.input["command"]);
      const { stdout, stderr } = await runHook(
        { line, args: null, timeoutMs: 60_000 },
        {},
        { cwd: root, env },
      );
      return stdout + stderr;
    }
    for (const { file, content } of changesOf(deed)) {
      const whole = path.join(root, file);
      this.#journal.around(file, () => {
        if (content === null) fs.rmSync(whole, { force: true });
        else {
          fs.mkdirSync(path.dirname(whole), { recursive: true });
          fs.writeFileSync(whole, content);
        }
      });
    }
    return "ok";
  }
}
