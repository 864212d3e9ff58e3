import { readFileSync, writeFileSync } from "node:fs";
import { freemem } from "node:os";
import { join } from "node:path";
import { Prng } from "../../../testing/simulator/prng";
import { PLAYED, type Played } from "../../support/harness/dialect";
import { type Entry, readJournal } from "../../support/harness/journal";
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
const SMALL_ROUND = { agents: 6, kills: 3, files: 6, deeds: 6 };
const SMALL_ROUNDS = 4;
const LARGE_ROUND = { agents: MOST_AGENTS, kills: 40, files: 50, deeds: 30 };
/** So many lines of the journal between two kills: a busy machine takes its time for them. */
const LINES_PER_KILL = 6;
/** Nobody is killed before every harness has written something, or so much was written without one of them. */
const MOST_LINES_BEFORE = 80;

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
    const program = await programFrom(task);
    const agent = await task.bundle("tests/support/harness/agent-process.ts");
    for (let round = 0; task.goesOn; round++)
      await runRound(task, program, agent.path, round < SMALL_ROUNDS ? SMALL_ROUND : LARGE_ROUND, round);
  },
};

/** With a bug in it, in three parts as `bin/cotenant` has them: a quick look at what is held, the guard, all the rest. */
async function programFrom(task: Task): Promise<string> {
  if (task.plant === null) return task.program();
  for (const entry of ["features/guard/entry/quick-guard", "features/guard/entry/guard-main", "cli/main"])
    await task.bundle(`src/${entry}.ts`);
  const program = join(task.scratch, "program.cjs");
  writeFileSync(
    program,
    `const [first, verb] = process.argv.slice(2);
    const isGuards = first === "guard" && /^(?:check|stop|end)$/.test(verb);
    const begun = isGuards ? require("./quick-guard.cjs").beginGuard(process.argv.slice(2)) : null;
    if (begun === null) require("./main.cjs");
    else if (begun !== "answered") require("./guard-main.cjs").answerCall(begun);\n`,
  );
  return program;
}

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
    // What the last of them held is wanted by those who are left.
    for (let [killed, written] = [0, 0]; ; ) {
      while (this.#atWork.size < most) await this.#hire(shared, deeds);
      const journal = readJournal(this.#place.journal);
      const isUnderWay = killed > 0 || journal.length > MOST_LINES_BEFORE || hasEverybody(journal);
      if (isUnderWay && journal.length - written >= LINES_PER_KILL) {
        if (killed === kills) break;
        written = journal.length;
        killed++;
        this.#task.tried++;
        await this.#victim(journal, killed).kill();
      }
      await nap(this.#chance.below(40));
    }
    for (const agent of this.#atWork.keys()) await agent.kill();
    await Promise.all(this.#atWork.values());
    await this.#inherit(shared.slice(0, SMALL_ROUND.files));
  }

  /** Everybody is dead: whatever they held is free at once. */
  async #inherit(files: readonly string[]): Promise<void> {
    const heir = await this.#rig.hire("claude");
    for (const file of files) {
      const { is, reason } = await heir.write(file, "inherited\n");
      if (is !== "done") this.#broke(`${file} is not free though everybody is dead: ${reason}`);
    }
  }

  /** In whatever it is doing: a hook, a write, a line of the journal. But every other one has just written something. */
  #victim(journal: readonly Entry[], killed: number): ScriptedAgent {
    const atWork = [...this.#atWork.keys()];
    const writers = new Set(journal.slice(-LINES_PER_KILL).map(({ agent }) => agent));
    const holding = atWork.filter(({ harness, session }) => writers.has(`${harness}:${session}`));
    return this.#chance.pick(killed % 2 === 1 && holding.length > 0 ? holding : atWork);
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
    task.count(
      "leases",
      [...tenures.byFile.values()].flat().filter(({ leaseId }) => leaseId !== null).length,
    );
    task.count("taken from the dead", tenures.endings.get("dead") ?? 0);
    task.count("refusals", log.split('"event_type":"contention.').length - 1);
  }

  #broke(what: string): void {
    this.#task.broke(what, `npm run verify -- --layer agents --seed ${this.#task.seed}`);
  }
}

function hasEverybody(journal: readonly Entry[]): boolean {
  return PLAYED.every((harness) => journal.some(({ agent }) => agent.startsWith(`${harness}:`)));
}

function nap(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
