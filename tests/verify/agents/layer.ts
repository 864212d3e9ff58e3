import { readFileSync } from "node:fs";
import { freemem } from "node:os";
import { Prng } from "../../../src/platform/sim/prng";
import { PLAYED, type Played } from "../../support/harness/dialect";
import { readJournal } from "../../support/harness/journal";
import { Rig, type ScriptedAgent } from "../../support/harness/rig";
import type { Done } from "../../support/harness/work";
import type { Layer, Task } from "../layer";
import { fastDisk } from "../linearizability/place";
import { check, tenuresIn } from "./check";
import { clear, makePlace, type Place } from "./place";

/** A harness, and the hook that it runs. */
const BYTES_PER_AGENT = 200 << 20;
const MOST_AGENTS = 16;
/** Small ones first, for a test that has little time. */
const SMALL_ROUND = { agents: 6, kills: 4, files: 10, deeds: 6 };
const SMALL_ROUNDS = 3;
const LARGE_ROUND = { agents: MOST_AGENTS, kills: 40, files: 50, deeds: 30 };
/** So many lines of the journal between two kills: a busy machine takes its time for them. */
const LINES_PER_KILL = 8;

/**
 * Scripted agents of every harness, in processes of their own, fight over the same files through the command lines that
 * `agent install` wrote, and are killed at any instant. What they write down themselves is held against cotenant's log.
 */
export const agents: Layer = {
  name: "agents",
  unit: "kills",
  inTest: SMALL_ROUND.kills,
  inVerify: SMALL_ROUNDS * SMALL_ROUND.kills + LARGE_ROUND.kills,
  share: 0.04,
  mustMove: ["writes", "refusals", "taken from the dead", ...PLAYED.map((harness) => `writes by ${harness}`)],
  async prove(task) {
    const program = await task.bundle("src/cli/main.ts");
    const agent = await task.bundle("tests/support/harness/agent-process.ts");
    for (let round = 0; task.goesOn; round++)
      await runRound(task, program.path, agent.path, round < SMALL_ROUNDS ? SMALL_ROUND : LARGE_ROUND, round);
  },
};

async function runRound(
  task: Task,
  program: string,
  agentProgram: string,
  size: typeof SMALL_ROUND,
  round: number,
): Promise<void> {
  const place = makePlace(fastDisk(), program);
  const { root, home, log, journal, env } = place;
  const rig = new Rig(agentProgram, null, { root, home, log, journal }, env);
  try {
    const fight = new Fight(task, place, rig, new Prng(task.seed, `round ${round}`));
    await fight.run(size);
    fight.judge();
  } finally {
    await rig.dismiss();
    clear(place);
  }
}

class Fight {
  readonly #task: Task;
  readonly #place: Place;
  readonly #rig: Rig;
  readonly #chance: Prng;
  readonly #atWork = new Map<ScriptedAgent, Promise<void>>();
  #hired = 0;

  constructor(task: Task, place: Place, rig: Rig, chance: Prng) {
    this.#task = task;
    this.#place = place;
    this.#rig = rig;
    this.#chance = chance;
  }

  async run({ agents: wanted, kills, files, deeds }: typeof SMALL_ROUND): Promise<void> {
    const most = Math.max(2, Math.min(wanted, Math.floor(freemem() / BYTES_PER_AGENT)));
    const shared = this.#place.files.slice(0, files);
    let killed = 0;
    for (let written = 0; killed < kills; ) {
      while (this.#atWork.size < most) await this.#hire(shared, deeds);
      const lines = readJournal(this.#place.journal).length;
      if (lines - written >= LINES_PER_KILL) {
        written = lines;
        killed++;
        this.#task.tried++;
        // In whatever it is doing: a hook, a write, a line of the journal.
        await this.#chance.pick([...this.#atWork.keys()]).kill();
      }
      await nap(this.#chance.below(40));
    }
    for (const agent of this.#atWork.keys()) await agent.kill();
    await Promise.all(this.#atWork.values());
  }

  async #hire(files: readonly string[], deeds: number): Promise<void> {
    // Each of them in turn: every harness meets every other.
    const harness = PLAYED[this.#hired++ % PLAYED.length] as Played;
    const agent = await this.#rig.hire(harness);
    const job = { seed: this.#chance.next(), files, deeds };
    const work = agent.work(job).then(async (done) => {
      if (!("gone" in done)) await this.#finish(agent, done);
      this.#atWork.delete(agent);
    });
    this.#atWork.set(agent, work);
  }

  /** One that has done its share goes as it should: its files are free then. */
  async #finish(agent: ScriptedAgent, { done, denied, failures, told }: Done): Promise<void> {
    this.#task.count("agents that finished");
    this.#task.count("deeds done", done);
    this.#task.count("refusals", denied);
    this.#task.count("remarks", told);
    for (const failure of new Set(failures)) this.#broke(`a hook of ${agent.harness} failed: ${failure}`);
    await agent.end();
    await agent.leave();
  }

  judge(): void {
    const task = this.#task;
    const entries = readJournal(this.#place.journal);
    const log = readFileSync(this.#place.log, "utf8");
    const tenures = tenuresIn(log);
    for (const what of check(entries, tenures)) this.#broke(what);
    const begun = entries.filter(({ phase }) => phase === "begin");
    task.count("writes", begun.length);
    for (const { agent } of begun) task.count(`writes by ${agent.split(":")[0]}`);
    task.count("taken from the dead", tenures.endings.get("dead") ?? 0);
    task.count("refusals", log.split('"event_type":"contention.').length - 1);
  }

  #broke(what: string): void {
    this.#task.broke(what, `npm run verify -- --layer agents --seed ${this.#task.seed}`);
  }
}

function nap(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
