import { join } from "node:path";
import type { Prng } from "../../../testing/simulator/prng";
import { DeadlyGit } from "../../support/deadly-git";
import type { Task } from "../layer";
import { Fleet, type Ship, type Told } from "./fleet";

const ISSUES = 120;
/** Fewer deaths than this, and it was not what it says. */
const FEWEST_KILLS = 24;

/** Each command of the ledger, killed before and after every Git command that it runs; then everybody must agree again. */
export async function drill(task: Task, program: string, chance: Prng): Promise<void> {
  const room = join(task.scratch, "drill");
  const fleet = await Fleet.launch(room, program, { ships: 2, issues: ISSUES }, chance);
  try {
    const run = new Drill(task, fleet, new DeadlyGit(room));
    for (const when of ["before", "after"] as const) {
      await run.killed(when, "claim", async () => {});
      await run.killed(when, "release", (issue) => run.must(run.one, "claim", "acquire", issue));
      await run.killed(when, "sync", (issue) => run.must(run.one, "issue", "comment", issue, "--text", "x"));
    }
    if (run.kills < FEWEST_KILLS) run.broke(`only ${run.kills} commands were killed`);
    task.count("killed at a Git command", run.kills);
  } finally {
    await fleet.dismiss();
  }
}

class Drill {
  readonly one: Ship;
  readonly #other: Ship;
  readonly #task: Task;
  readonly #fleet: Fleet;
  readonly #git: DeadlyGit;
  readonly #issues: string[];
  kills = 0;

  constructor(task: Task, fleet: Fleet, git: DeadlyGit) {
    const [one, other] = fleet.ships as [Ship, Ship];
    this.one = one;
    this.#other = other;
    this.#task = task;
    this.#fleet = fleet;
    this.#git = git;
    this.#issues = [...fleet.issues];
  }

  async killed(
    when: "before" | "after",
    what: "claim" | "release" | "sync",
    prepare: (issue: string) => Promise<unknown>,
  ): Promise<void> {
    for (let nth = 1; ; nth++) {
      const issue = this.#issues.pop();
      if (issue === undefined) return this.broke("there are not enough issues");
      await prepare(issue);
      const args = {
        claim: ["claim", "acquire", issue],
        release: ["claim", "release", issue],
        sync: ["sync"],
      };
      const told = await this.one.ask(args[what], null, this.#git.env(when, nth));
      const wasKilled = told?.status === null;
      if (wasKilled) this.kills++;
      this.#task.tried++;
      await this.#agree(issue, `${what}, killed ${when} Git command ${nth}`, what);
      if (!wasKilled && this.#git.used < nth) return;
    }
  }

  /** Whatever was left behind: one holder, which the ledger names, and everybody gets on. */
  async #agree(issue: string, doing: string, what: "claim" | "release" | "sync"): Promise<void> {
    if (what === "release") {
      await this.one.ask(["claim", "release", issue]);
      await this.must(this.one, "sync", "--reconcile");
    }
    if (what === "sync") await this.must(this.one, "sync");
    const asked = [
      [this.#other, await this.#other.ask(["claim", "acquire", issue])],
      [this.one, await this.one.ask(["claim", "acquire", issue])],
    ] as const;
    const holders = asked.filter(([, told]) => told?.status === 0);
    if (holders.length !== 1) return this.broke(`${doing}: ${holders.length} hold it: ${texts(asked)}`);
    const [ship, told] = holders[0]!;
    if (what !== "claim" && ship !== this.#other) this.broke(`${doing}: it was not free: ${texts(asked)}`);
    const lease = (told!.json!.data!["lease"] as { lease_id: string }).lease_id;
    const there = this.#fleet.git("log", "-1", "--format=%B", `refs/cotenant/claims/${issue}`);
    if (!there.includes(lease)) this.broke(`${doing}: ${ship.name} has ${lease}, and the ledger ${there}`);
    for (const each of this.#fleet.ships) await this.must(each, "sync", "--reconcile");
    await this.must(ship, "claim", "release", issue);
  }

  async must(ship: Ship, ...args: string[]): Promise<void> {
    const told = await ship.ask(args);
    if (told?.status !== 0) this.broke(`${ship.name}: ${args.join(" ")}: ${told?.text}`);
  }

  broke(what: string): void {
    this.#task.broke(what, `npm run verify -- --layer "ledger soak" --seed ${this.#task.seed}`);
  }
}

function texts(asked: readonly (readonly [Ship, Told | null])[]): string {
  return asked.map(([ship, told]) => `${ship.name}: ${told?.text}`).join("; ");
}
