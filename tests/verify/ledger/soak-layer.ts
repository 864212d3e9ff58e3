import { join } from "node:path";
import { Prng } from "../../../testing/simulator/prng";
import type { Layer, Task } from "../layer";
import { drill } from "./drill";
import { Fleet, type Ship, SKEW_SECS, type Told, TTL_SECS } from "./fleet";

/** The first round is for a test that has little time. */
const FIRST = { ships: 2, issues: 2, commands: 12 };
/** Before the large ones: a test that lacks something rare tries a few more of these. */
const SMALL_ROUNDS = 3;
const LATER = { ships: 16, issues: 200, commands: 640 };
/** The weather changes with every so many commands. */
const WEATHER_EVERY = 3;

/** What came of a command that is neither success nor a bug. */
const EXPECTED: ReadonlySet<string> = new Set([
  "E_LOCK_CONFLICT",
  "E_RETRIES_EXHAUSTED",
  "E_NOT_FOUND",
  "E_TERMINAL_STATE",
  "E_LEASE_REQUIRED",
  "E_LOCK_NOT_HELD",
  "E_LOCK_EXPIRED",
  "E_FENCING_MISMATCH",
  "E_REMOTE_UNREACHABLE",
  "E_GIT_TIMEOUT",
  "E_STORE_BUSY",
]);

/** Real clones over a real server: kills, partitions, clocks that differ, and the ledger's own history as the judge. */
export const ledgerSoak: Layer = {
  name: "ledger soak",
  unit: "commands",
  inTest: FIRST.commands,
  inVerify: LATER.commands,
  // Five minutes of the ten that there are, with another layer beside it.
  share: 0.25,
  mustMove: [
    "kills",
    "cables pulled",
    "claims",
    "provisional claims",
    "conflicts",
    "releases",
    "changes acknowledged",
    "syncs",
  ],
  async prove(task) {
    const { path } = await task.bundle("src/cli/main.ts");
    for (let round = 0; task.goesOn; round++) {
      const chance = new Prng(task.seed, `fleet ${round}`);
      const voyage = new Voyage(task, round, chance);
      const isSmall = round < SMALL_ROUNDS;
      if (round === SMALL_ROUNDS) await drill(task, path, chance);
      await voyage.run(path, isSmall ? FIRST : LATER, isSmall);
    }
  },
};

type Deed = "claim" | "next" | "change" | "comment" | "release" | "renew" | "sync";

const DEEDS: readonly Deed[] = [
  "claim",
  "claim",
  "next",
  "change",
  "change",
  "comment",
  "release",
  "renew",
  "sync",
];

class Voyage {
  readonly #task: Task;
  readonly #round: number;
  readonly #chance: Prng;
  /** What was acknowledged as written, by issue: it must be there in the end. */
  readonly #written: { issue: string; text: string }[] = [];
  /** What was acknowledged as claimed, and not as provisional. */
  readonly #claimed: { issue: string; lease: string; by: string }[] = [];
  #left = 0;
  #marks = 0;
  #storms = 0;

  constructor(task: Task, round: number, chance: Prng) {
    this.#task = task;
    this.#round = round;
    this.#chance = chance;
  }

  async run(program: string, size: typeof FIRST, isRehearsed: boolean): Promise<void> {
    const fleet = await Fleet.launch(
      join(this.#task.scratch, `round-${this.#round}`),
      program,
      size,
      this.#chance,
    );
    try {
      this.#left = size.commands;
      if (isRehearsed) await this.#rehearse(fleet);
      await Promise.all(
        fleet.ships.map((ship, n) => this.#sail(fleet, ship, this.#chance.stream(`ship ${n}`))),
      );
      await this.#makePeace(fleet);
      this.#judge(fleet);
    } finally {
      for (const { kills } of fleet.ships) this.#task.count("kills", kills);
      await fleet.dismiss();
    }
  }

  /** A cable is pulled, or mended, or the line becomes bad. */
  #storm(fleet: Fleet): void {
    const { proxy } = this.#chance.pick(fleet.ships);
    const next = this.#storms++ % 5;
    if (next === 0) {
      proxy.weather = { down: true };
      this.#task.count("cables pulled");
    } else if (next === 1) proxy.weather = { losesAnswer: true };
    else if (next === 2) proxy.weather = { cutAfter: this.#chance.between(1, 1_500) };
    else proxy.weather = {};
  }

  /** What a few commands by chance may miss: a conflict, a claim while the cable is out, and a death. */
  async #rehearse({ ships, issues }: Fleet): Promise<void> {
    const [one, other] = ships as [Ship, Ship];
    const [mine, yours] = issues as [string, string];
    await this.#act(one, "claim", mine);
    await this.#act(other, "claim", mine);
    await this.#act(one, "change", mine);
    other.proxy.weather = { down: true };
    this.#task.count("cables pulled");
    await this.#act(other, "claim", yours);
    other.proxy.weather = {};
    await this.#act(one, "release", mine);
    await this.#act(one, "claim", mine, this.#chance.between(60, 200));
    await this.#act(other, "sync", yours);
  }

  async #sail(fleet: Fleet, ship: Ship, chance: Prng): Promise<void> {
    let last = chance.pick(fleet.issues);
    while (this.#left > 0) {
      const name = chance.pick(DEEDS);
      // Mostly about what it claimed last: whoever claims does something with it.
      const isSame = name !== "claim" && chance.chance(0.75);
      const issue = isSame ? last : chance.pick(fleet.issues);
      const kill = chance.chance(0.15) ? chance.between(30, 1_500) : null;
      if (this.#left % WEATHER_EVERY === 0) this.#storm(fleet);
      last = (await this.#act(ship, name, issue, kill)) ?? last;
    }
  }

  /** Answers the issue that it has claimed now. */
  async #act(ship: Ship, name: Deed, issue: string, kill: number | null = null): Promise<string | undefined> {
    this.#left--;
    this.#task.tried++;
    const mark = `${ship.name} ${this.#round}.${++this.#marks}`;
    const deeds: Record<Deed, string[]> = {
      claim: ["claim", "acquire", issue, "--ttl", String(TTL_SECS)],
      next: ["claim", "next", "--ttl", String(TTL_SECS)],
      change: ["issue", "update", issue, "--context", `${mark.replace(/\W/g, "-")}=x`],
      comment: ["issue", "comment", issue, "--text", mark],
      release: ["claim", "release", issue],
      renew: ["claim", "renew", issue],
      sync: ["sync"],
    };
    const told = await ship.ask(deeds[name], kill);
    return told === null ? undefined : this.#hear(ship, name, issue, mark, told);
  }

  #hear(ship: Ship, name: string, issue: string, mark: string, told: Told): string | undefined {
    const task = this.#task;
    if (told.json === null)
      return void this.#broke(`${ship.name}: ${told.args.join(" ")}: exit ${told.status}: ${told.text}`);
    const { data, error } = told.json;
    if (error !== undefined) {
      if (error.code === "E_LOCK_CONFLICT") task.count("conflicts");
      if (!EXPECTED.has(error.code))
        this.#broke(`${ship.name}: ${told.args.join(" ")}: ${error.code}: ${error.message}`);
      return undefined;
    }
    if (name === "claim" || name === "next") {
      const lease = data!["lease"] as { lease_id: string; issue_id: string };
      const isSure = data!["offline"] !== true;
      task.count(isSure ? "claims" : "provisional claims");
      if (isSure) this.#claimed.push({ issue: lease.issue_id, lease: lease.lease_id, by: ship.name });
      return lease.issue_id;
    } else if (name === "change") {
      this.#written.push({ issue, text: `"${mark.replace(/\W/g, "-")}"` });
      task.count("changes acknowledged");
    } else if (name === "comment") {
      this.#written.push({ issue, text: `"${mark}"` });
      task.count("changes acknowledged");
    } else if (name === "release") task.count("releases");
    else if (name === "sync") task.count("syncs");
    return undefined;
  }

  /** The weather is fine, and everybody syncs until nobody has anything to say. */
  async #makePeace(fleet: Fleet): Promise<void> {
    for (const { proxy } of fleet.ships) proxy.weather = {};
    for (let round = 0; round < 2; round++)
      for (const ship of fleet.ships) {
        const told = await ship.ask(["sync"]);
        if (told === null || ![0, 1].includes(told.status ?? -1))
          this.#broke(`${ship.name} cannot sync in the end: ${told?.text}`);
      }
  }

  // --- the ledger's own history ----------------------------------------------------------------------------

  #judge(fleet: Fleet): void {
    for (const issue of fleet.issues) {
      const history = historyOf(fleet, issue);
      for (const [i, entry] of history.entries()) {
        const wrong = i === 0 ? null : wrongAfter(history[i - 1]!, entry);
        if (wrong !== null) this.#broke(`${issue}: ${wrong}`);
        if (i > 0 && history[i - 1]!.lease_id !== entry.lease_id && history[i - 1]!.status === "held")
          this.#task.count("takeovers");
      }
      const known = new Set(
        history.filter(({ status }) => status === "held").map(({ lease_id }) => lease_id),
      );
      for (const { lease, by } of this.#claimed.filter((claim) => claim.issue === issue))
        if (!known.has(lease))
          this.#broke(`${by} was told that it holds ${issue}, and the ledger never had lease ${lease}`);
      const files = filesOf(fleet, issue);
      for (const { text } of this.#written.filter((written) => written.issue === issue))
        if (!files.includes(text)) this.#broke(`${issue}: ${text} was acknowledged, and is not there`);
    }
  }

  #broke(what: string): void {
    this.#task.broke(what, `npm run verify -- --layer "ledger soak" --seed ${this.#task.seed}`);
  }
}

interface Entry {
  readonly status: string;
  readonly lease_id: string;
  readonly clone_id: string;
  readonly agent_id: string;
  readonly fencing_token: number;
  readonly expires_at: string | null;
  /** By the pusher's clock, in whole seconds. */
  readonly pushedAtMs: number;
}

function historyOf(fleet: Fleet, issue: string): Entry[] {
  const ref = `refs/cotenant/claims/${issue}`;
  if (fleet.git("for-each-ref", ref).trim() === "") return [];
  return fleet
    .git("log", "--reverse", "--format=%ct%n%B%x00", ref)
    .split("\0")
    .filter((entry) => entry.trim() !== "")
    .map((entry) => {
      const lines = entry.trim().split("\n");
      return {
        ...(JSON.parse(lines.at(-1)!) as Omit<Entry, "pushedAtMs">),
        pushedAtMs: Number(lines[0]) * 1000,
      };
    });
}

/** What may follow what on a claim's ref. */
function wrongAfter(before: Entry, after: Entry): string | null {
  if (before.lease_id === after.lease_id) {
    if (before.fencing_token !== after.fencing_token) return `lease ${after.lease_id} changed its token`;
    return before.status !== "held" && after.status === "held"
      ? `lease ${after.lease_id} rose from the dead`
      : null;
  }
  if (after.fencing_token <= before.fencing_token)
    return `token ${after.fencing_token} after ${before.fencing_token}`;
  if (before.status !== "held" || before.clone_id === after.clone_id) return null;
  const overAtMs =
    before.expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(before.expires_at) + SKEW_SECS * 1000;
  return after.pushedAtMs + 1_000 > overAtMs
    ? null
    : `${after.agent_id} took it from ${before.agent_id} before its time`;
}

/** Everything that the branch has of an issue. */
function filesOf(fleet: Fleet, issue: string): string {
  const names = fleet
    .git("ls-tree", "-r", "--name-only", "cotenant-sync", `.cotenant/issues/${issue}`)
    .trim()
    .split("\n");
  return names.map((name) => fleet.git("show", `cotenant-sync:${name}`)).join("\n");
}
