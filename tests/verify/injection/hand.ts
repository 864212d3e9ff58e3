/**
 * Tries injection points, one after the other, in a room of its own: sets the stage, runs the command under strace,
 * looks at what is left, tries again. Started by the layer, asked through messages.
 */
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  age,
  checkAnswer,
  checkSecrets,
  checkStore,
  checkTokens,
  effects,
  leftovers,
  type Understood,
} from "./check";
import { type LogBook, readLog } from "./log";
import { type Answer, FreshProgram, LoadedProgram, letGo, listen, type Program } from "./program";
import { OTHER, type Scenario, scenarioOf } from "./scenarios";
import { Stage } from "./stage";
import { type Call, type Ended, type Kind, masked, Tracer } from "./trace";
import { shapeOf } from "./tree";

export type Spot = Omit<Call, "changes">;

export interface Point {
  readonly scenario: string;
  readonly kind: Kind;
  readonly at: Spot;
  /** Where the next try is killed, too. */
  readonly andAt?: Spot;
}

export type Question =
  | { readonly ask: "calls"; readonly scenario: string }
  /** The calls of the second try, after the first was killed there. */
  | { readonly ask: "calls of recovery"; readonly point: Point }
  | { readonly ask: "try"; readonly point: Point };

export interface Tried {
  readonly hit: boolean;
  readonly wrong: readonly string[];
  /** What it amounted to, for the counters. */
  readonly seen: readonly string[];
  readonly shape: string;
}

export interface HandSettings {
  readonly room: string;
  /** What is run as `cotenant`, and what runs the same code in this process: evaluated for each command, or loaded once. */
  readonly binary: string;
  readonly bundle: string;
  readonly loaded: string | null;
  readonly library: string;
}

/** `stop` has no command of its own yet: the library's call, answered as a command would. */
const STOP = (library: string) => `
  const { openRepository } = require(${JSON.stringify(library)});
  const say = (answer, status) => (require("node:fs").writeSync(1, JSON.stringify(answer)), process.exit(status));
  openRepository().then((repository) => repository.stop()).then(
    ({ changed }) => say({ ok: true, data: { changed } }, 0),
    (error) => say({ ok: false, error: error.toJSON() }, error.exit),
  );`;

/** A disk that fails Git, too, or while a worktree is looked at. */
const OF_TREES = ["E_GIT", "E_CONSISTENCY_UNAVAILABLE", "E_PARTIAL_SNAPSHOT", "E_STORE_BUSY"];

class Hand {
  readonly #stage: Stage;
  readonly #tracer: Tracer;
  readonly #settings: HandSettings;
  readonly #stopScript: string;
  readonly #stopper: Program;
  readonly #known = new Set<string>();
  readonly #usual = new Map<string, Ended>();

  constructor(settings: HandSettings) {
    const repo = join(settings.room, "repo");
    const { bundle, loaded } = settings;
    this.#settings = settings;
    const program = loaded === null ? new FreshProgram(bundle, repo) : new LoadedProgram(loaded, repo);
    this.#stage = new Stage(settings.room, program);
    this.#tracer = new Tracer(repo, settings.room);
    this.#stopScript = join(settings.room, "stop.cjs");
    writeFileSync(this.#stopScript, STOP(settings.library));
    this.#stopper = new FreshProgram(this.#stopScript, repo);
  }

  async answer(question: Question): Promise<unknown> {
    if (question.ask === "calls") return this.#calls(scenarioOf(question.scenario));
    if (question.ask === "try") return this.#try(question.point);
    const scenario = scenarioOf(question.point.scenario);
    await this.#stage.set(scenario);
    const { hit } = this.#inject(scenario, question.point.kind, question.point.at);
    return hit ? this.#record(scenario).calls : [];
  }

  async #calls(scenario: Scenario): Promise<readonly Call[]> {
    await this.#stage.set(scenario);
    const { calls, ended } = this.#record(scenario);
    this.#usual.set(scenario.name, ended);
    return calls;
  }

  async #try(point: Point): Promise<Tried> {
    const scenario = scenarioOf(point.scenario);
    if (!this.#usual.has(scenario.name)) await this.#calls(scenario);
    await this.#stage.set(scenario);
    const before = readLog(this.#stage.control);
    const mutex = this.#mutexInode;
    const wrong: string[] = [];
    const ended = this.#inject(scenario, point.kind, point.at);
    if (!ended.hit) return { hit: false, wrong, seen: [], shape: "" };
    const understood = point.kind === "KILL" ? null : this.#judge(scenario, point, before, ended, wrong);
    const left = readLog(this.#stage.control);
    const had = effects(scenario, before, left, wrong);
    if (point.andAt !== undefined) {
      const again = this.#inject(scenario, "KILL", point.andAt);
      if (!again.hit) return { hit: false, wrong, seen: [], shape: "" };
    }
    // PROTOCOL 2: or somebody locks one file, and somebody else another.
    if (before.inode !== null && (mutex === null || this.#mutexInode !== mutex))
      wrong.push("the mutex is another file, or gone");
    checkSecrets(this.#stage.repo, [ended.stdout, ended.stderr], wrong);
    await checkStore(scenario, this.#stage.control, wrong);
    const insane = scenario.sane?.(this.#stage.repo) ?? null;
    if (insane !== null) wrong.push(insane);
    const isWritten = effects(scenario, before, readLog(this.#stage.control), wrong) > 0;
    await this.#checkIssue(scenario, isWritten, wrong);
    const shape = `${ended.status} ${understood?.isUnknown}\n${shapeOf(this.#stage.repo)}`;
    if (!this.#known.has(scenario.name + shape)) {
      this.#known.add(scenario.name + shape);
      await this.#goOn(scenario, before, understood, wrong);
    }
    letGo(this.#stage.repo);
    return { hit: true, wrong, seen: seen(point, scenario, understood, had), shape: masked(shape) };
  }

  /** An error's answer, against what is in the log. */
  #judge(scenario: Scenario, { at }: Point, before: LogBook, ended: Ended, wrong: string[]): Understood {
    if (ended.signal !== null) wrong.push(`died of ${ended.signal}`);
    const understood = checkAnswer(ended, wrong);
    const { status: usual } = this.#usual.get(scenario.name)!;
    const log = readLog(this.#stage.control);
    const had = effects(scenario, before, log, wrong);
    const isAsUsual = ended.status === usual;
    const codes = [
      "E_DISK",
      "E_PERMISSION",
      ...(at.where === ".cotenant/config.toml" ? ["E_CONFIG"] : []),
      ...scenario.refusals,
      ...(scenario.sane === null ? [] : OF_TREES),
    ];
    if (!isAsUsual && !codes.includes(understood.code ?? ""))
      wrong.push(`answered ${understood.code}: ${ended.stdout}`);
    if (scenario.event !== null && understood.ok && had === 0)
      wrong.push(`said to be done, and not in the log: ${ended.stdout}${ended.stderr}`);
    if (!understood.ok && log.torn > before.torn) wrong.push("half a line is left, by one that lives");
    if (had > 0 && scenario.isOneStep && !understood.ok && !understood.isUnknown)
      wrong.push(`said to have failed, and in the log: ${ended.stdout}`);
    // Linux reports lost pages once: after a failed sync only another file can be trusted.
    const isLogSync = at.call === "fdatasync" && at.where === ".git/cotenant/claims.jsonl";
    if (isLogSync && understood.ok && had > 0 && log.inode === before.inode)
      wrong.push("said to be done, in a file whose sync has failed");
    return understood;
  }

  /** The store must work with no repair: for the same agent trying again, and for others; whoever comes first. */
  async #goOn(scenario: Scenario, before: LogBook, first: Understood | null, wrong: string[]): Promise<void> {
    letGo(this.#stage.repo);
    this.#stage.keep();
    for (const isOtherFirst of scenario.isOpen ? [false, true] : [false]) {
      if (isOtherFirst) this.#stage.comeBack();
      const told: string[] = [];
      const expect = async (agent: string, args: readonly string[], statuses: readonly number[]) => {
        const answer = await this.#run(scenario, agent, args);
        told.push(answer.stdout, answer.stderr);
        if (!statuses.includes(answer.status))
          wrong.push(
            `${isOtherFirst ? "second" : "first"} round: ${agent} ${args.join(" ")}: expected ${statuses.join(" or ")}: ${answer.stdout}${answer.stderr}`,
          );
        return answer;
      };
      for (const look of ["status", "lock status", "claim list"]) await expect(OTHER, look.split(" "), [0]);
      if (isOtherFirst) await expect(OTHER, ["lock", "acquire", "other.ts"], [0]);
      await this.#again(scenario, before, first, expect, wrong);
      await this.#checkIssue(scenario, true, wrong);
      if (!isOtherFirst) await expect(OTHER, ["lock", "acquire", "other.ts"], [0]);
      for (const [agent, text, status] of scenario.proofs) await expect(agent, text.split(" "), [status]);
      age(this.#stage.repo);
      await expect(scenario.agent, ["gc"], [0]);
      await checkStore(scenario, this.#stage.control, wrong);
      checkTokens(before, readLog(this.#stage.control), wrong);
      checkSecrets(this.#stage.repo, told, wrong);
      const unfinished = leftovers(this.#stage.repo);
      if (unfinished.length > 0) wrong.push(`left for ever: ${unfinished.join(", ")}`);
    }
  }

  /** A write that is in the log is seen by everybody, and no half of one by anybody. */
  async #checkIssue(scenario: Scenario, isWritten: boolean, wrong: string[]): Promise<void> {
    if (scenario.issue === null) return;
    const answer = await this.#run(scenario, OTHER, ["issue", "show", "$issue"]);
    const seen = summary(answer);
    const expected = isWritten ? scenario.issue.new : scenario.issue.old;
    if (seen !== expected) wrong.push(`the issue is "${seen}" and not "${expected}": ${answer.stderr}`);
  }

  /** The same command once more, with the id that an unclear answer named. */
  async #again(
    scenario: Scenario,
    before: LogBook,
    first: Understood | null,
    expect: (agent: string, args: readonly string[], statuses: readonly number[]) => Promise<Answer>,
    wrong: string[],
  ): Promise<void> {
    const had = effects(scenario, before, readLog(this.#stage.control), wrong);
    const given = first?.isUnknown === true && scenario.isOneStep ? first.requestId : null;
    const isNew = given !== null && !scenario.args.includes("--request-id");
    const args = isNew ? [...scenario.args, "--request-id", given] : scenario.args;
    const isNamed = args.includes("--request-id");
    const usual = this.#usual.get(scenario.name)!.status!;
    // What does several things, one after the other, may have done the one that counts without saying so.
    const either = scenario.isOneStep ? [usual] : [...scenario.again, usual];
    const answer = await expect(scenario.agent, args, had > 0 && !isNamed ? scenario.again : either);
    const count = effects(scenario, before, readLog(this.#stage.control), wrong);
    if (scenario.event === null) return;
    if (isNamed && had > 0 && !checkAnswer(answer, wrong).isReplayed)
      wrong.push("done again, with the same request id");
    if (count !== 1 && !(scenario.isRepeatable && !isNamed))
      wrong.push(`the effect is in the log ${count} times`);
  }

  #run(scenario: Scenario, agent: string, args: readonly string[]): Promise<Answer> {
    return args[0] === "stop" ? this.#stopper.run(agent, args) : this.#stage.run(scenario, agent, args);
  }

  #record(scenario: Scenario): { calls: Call[]; ended: Ended } {
    return this.#tracer.record(this.#command(scenario), this.#env(scenario));
  }

  #inject(scenario: Scenario, kind: Kind, at: Point["at"]): Ended & { hit: boolean } {
    if (kind === "SHORT") return this.#tracer.limit(at, this.#command(scenario), this.#env(scenario));
    return this.#tracer.inject(at, kind, this.#command(scenario), this.#env(scenario));
  }

  get #mutexInode(): number | null {
    return statSync(join(this.#stage.control, "locks/claims.lock"), { throwIfNoEntry: false })?.ino ?? null;
  }

  #command(scenario: Scenario): string[] {
    this.#tracer.issue = this.#stage.issueOf(scenario);
    if (scenario.args[0] === "stop") return [this.#stopScript];
    return [this.#settings.binary, ...this.#stage.filled(scenario, scenario.args), "--json"];
  }

  #env(scenario: Scenario): NodeJS.ProcessEnv {
    return { ...process.env, COTENANT_AGENT_ID: scenario.agent };
  }
}

function seen(
  { kind, at, andAt }: Point,
  scenario: Scenario,
  understood: Understood | null,
  had: number,
): string[] {
  const names = [`${kind} at ${at.call}`, ...(andAt === undefined ? [] : ["killed again while recovering"])];
  if (understood === null) {
    if (scenario.event !== null) names.push(had > 0 ? "killed after the append" : "killed before the append");
  } else
    names.push(
      understood.ok ? "answered: done" : understood.isUnknown ? "answered: unknown" : "answered: refused",
    );
  return names;
}

function summary({ status, stdout }: Answer): string {
  if (status === 4) return "deleted";
  const { issue } = (JSON.parse(stdout) as { data: { issue: Record<string, unknown> } }).data;
  const { version } = issue["stamp"] as { version: number };
  return `${issue["state"]}, version ${version}, labels ${(issue["labels"] as string[]).join(" ")}`;
}

const hand = new Hand(JSON.parse(process.argv[2]!) as HandSettings);
listen();
process.on("message", (question: Question) => {
  hand.answer(question).then(
    (answer) => process.send!({ answer }),
    (error: Error) => process.send!({ failed: error.stack ?? error.message }),
  );
});
