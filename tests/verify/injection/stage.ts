import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { dirname, join } from "node:path";
import { LocalCoordinator } from "../../../src/coordinator/local";
import { Session } from "../../../src/coordinator/session";
import { Workspace } from "../../../src/coordinator/workspace";
import { makeUlid } from "../../../src/kernel/ids";
import type { LeaseKey } from "../../../src/kernel/keys";
import { nodePlatform } from "../../../src/platform/node/node";
import { thisMachine } from "../../../src/platform/node/this-machine";
import { SessionSecrets } from "../../../src/store/secrets";
import { Store } from "../../../src/store/store";
import { type Answer, letGo, type Program } from "./program";
import type { Scenario, Step } from "./scenarios";
import { copyRepo } from "./tree";

/** One place for repositories: every scenario is played at the same path, because a worktree knows its own. */
export class Stage {
  readonly repo: string;
  readonly control: string;
  readonly #room: string;
  readonly #program: Program;
  readonly #issues = new Map<string, string>();
  readonly #requests = new Map<string, string>();
  readonly #plans = new Map<string, string>();

  constructor(room: string, program: Program) {
    this.#room = room;
    this.#program = program;
    this.repo = join(room, "repo");
    this.control = join(this.repo, ".git/cotenant");
  }

  /** The repository as it is before the scenario's command. */
  async set(scenario: Scenario): Promise<void> {
    const kept = join(this.#room, `before-${scenario.name}`);
    if (!fs.existsSync(kept)) {
      await this.#prepare(scenario);
      letGo(this.repo);
      fs.renameSync(this.repo, kept);
    }
    this.#clearBeside();
    copyRepo(kept, this.repo);
  }

  /** Worktrees that a command has made beside the repository. */
  #clearBeside(): void {
    for (const name of fs.readdirSync(this.#room))
      if (/^back$|^\.cotenant-/.test(name))
        fs.rmSync(join(this.#room, name), { recursive: true, force: true });
  }

  /** Puts the present state by, to come back to. */
  keep(): void {
    copyRepo(this.repo, join(this.#room, "kept"));
    this.#copyBeside(this.#room, join(this.#room, "kept-beside"));
  }

  comeBack(): void {
    copyRepo(join(this.#room, "kept"), this.repo);
    this.#clearBeside();
    this.#copyBeside(join(this.#room, "kept-beside"), this.#room);
  }

  #copyBeside(from: string, to: string): void {
    if (from === this.#room) fs.rmSync(to, { recursive: true, force: true });
    fs.mkdirSync(to, { recursive: true });
    for (const name of fs.readdirSync(from))
      if (/^back$|^\.cotenant-/.test(name))
        fs.cpSync(join(from, name), join(to, name), { recursive: true, verbatimSymlinks: true });
  }

  /** Empty where there is none. */
  issueOf(scenario: Scenario): string {
    return this.#issues.get(scenario.name) ?? "";
  }

  /** With this scenario's ids in the place of their names. */
  filled(scenario: Scenario, args: readonly string[]): string[] {
    return args.map((word) => {
      if (word.includes("$repo")) return word.replace("$repo", this.repo);
      if (word === "$issue") return this.#issues.get(scenario.name) ?? word;
      if (word === "$plan") return this.#plans.get(scenario.name) ?? word;
      if (word !== "$request") return word;
      const known = this.#requests.get(scenario.name) ?? this.#ulid();
      this.#requests.set(scenario.name, known);
      return known;
    });
  }

  run(scenario: Scenario, agent: string, args: readonly string[]): Promise<Answer> {
    return this.#program.run(agent, [...this.filled(scenario, args), "--json"]);
  }

  async #prepare(scenario: Scenario): Promise<void> {
    fs.rmSync(this.repo, { recursive: true, force: true });
    execFileSync("git", ["init", "--quiet", "--template=", "--initial-branch=main", this.repo]);
    // Tells when the worktree was made, as Git's own template would.
    fs.writeFileSync(join(this.repo, ".git/description"), "a scenario\n");
    for (const step of scenario.before) await this.#take(scenario, step);
  }

  async #take(scenario: Scenario, step: Step): Promise<void> {
    if ("git" in step) execFileSync("git", step.git, { cwd: this.repo });
    else if ("file" in step) this.#write(step);
    else if ("plan" in step) {
      const args = ["restore", step.plan, "--inplace"];
      const { stdout } = await this.run(scenario, step.agent, args);
      this.#plans.set(scenario.name, (JSON.parse(stdout) as { data: { plan_id: string } }).data.plan_id);
    } else if ("wait" in step) await new Promise((resolve) => setTimeout(resolve, step.wait * 1000));
    else if ("spoil" in step) this.#spoil(step.spoil);
    else if ("acquire" in step) await this.#acquireEarlier(step);
    else if ("renew" in step) {
      while (fs.statSync(this.#log).size < step.untilBytes - A_FEW_LEASES)
        await this.#must(scenario, step.agent, ["lock", "renew", step.renew]);
    } else await this.#must(scenario, step.agent, step.args);
  }

  #write({ file, text }: Extract<Step, { file: string }>): void {
    const path = join(this.repo, file);
    fs.mkdirSync(dirname(path), { recursive: true });
    if (text === null) fs.rmSync(path);
    else fs.writeFileSync(path, text);
  }

  async #must(scenario: Scenario, agent: string, args: readonly string[]): Promise<void> {
    const { status, stdout, stderr } = await this.run(scenario, agent, args);
    if (status !== 0) throw new Error(`${scenario.name}: ${args.join(" ")}: ${status} ${stdout} ${stderr}`);
    const { issue } = (JSON.parse(stdout) as { data: { issue?: { id: string } } }).data;
    if (issue !== undefined) this.#issues.set(scenario.name, issue.id);
  }

  /** By the same code, with a clock that is behind. */
  async #acquireEarlier(step: Extract<Step, { acquire: string }>): Promise<void> {
    const { agent, acquire, ttlSecs, agoSecs } = step;
    const machine = { ...thisMachine(), cwd: this.repo, isTerminal: false };
    const workspace = await Workspace.open(machine, { agentId: agent });
    const { actor } = await workspace.session("write");
    const { clock } = machine.platform;
    const platform = {
      ...machine.platform,
      clock: {
        wallMs: () => clock.wallMs() - agoSecs * 1000,
        monotonicMs: () => clock.monotonicMs() - agoSecs * 1000,
        clockId: () => clock.clockId(),
      },
    };
    const store = new Store(platform, workspace.store.options);
    const secrets = new SessionSecrets(platform, store.layout, actor, () => store.prepare());
    const coordinator = new LocalCoordinator(store, workspace.config.policy);
    await new Session(platform, coordinator, actor, secrets).acquire(
      [{ key: acquire as LeaseKey, reach: "repository" }],
      { ttlSecs },
    );
  }

  #spoil(how: Extract<Step, { spoil: string }>["spoil"]): void {
    const log = fs.existsSync(this.#log) ? fs.readFileSync(this.#log, "utf8") : "";
    if (how === "lose the log") fs.rmSync(this.#log);
    else if (how === "lose the index") fs.rmSync(join(this.control, "index"), { recursive: true });
    else if (how === "tear the tail") fs.appendFileSync(this.#log, '{"schema_version":1,"sequence":');
    else if (how === "fail a sync")
      fs.writeFileSync(join(this.control, "locks/sync-failed"), "", { mode: 0o600 });
    else if (how === "age the secrets") this.#ageSecrets();
    // In the first grant, which everything after it says was synced.
    else
      fs.writeFileSync(
        this.#log,
        log.replace('"event_type":"claim.acquired"', '"event_type":"claim.acquireD"'),
      );
  }

  #ageSecrets(): void {
    const folder = join(this.control, "secrets");
    for (const name of fs.readdirSync(folder, { recursive: true }) as string[]) {
      const path = join(folder, name);
      if (!path.endsWith(".json")) continue;
      const old = new Date(Date.now() - 600_000).toISOString();
      fs.writeFileSync(
        path,
        fs.readFileSync(path, "utf8").replace(/"made_at":"[^"]+"/g, `"made_at":"${old}"`),
      );
    }
  }

  get #log(): string {
    return join(this.control, "claims.jsonl");
  }

  #ulid(): string {
    const { clock, random } = nodePlatform();
    return makeUlid(clock.wallMs() as number, random.bytes(10) as Uint8Array);
  }
}

/** Bytes of a line about four of them; one about one of them is less than half as long. */
const A_FEW_LEASES = 4000;
