import { freemem } from "node:os";
import { Prng } from "../../../testing/simulator/prng";
import type { Layer, Task } from "../layer";
import { inspect } from "../linearizability/aftermath";
import { insider, killNextWriter } from "../linearizability/ambush";
import { check } from "../linearizability/checker";
import { CommandLine } from "../linearizability/command-line";
import { type Crew, type WorkerProcess, withCrew } from "../linearizability/crew";
import { count } from "../linearizability/figures";
import { fastDisk, type Place, ROTATE_BYTES } from "../linearizability/place";

/** A process of Node takes about half of this. */
const BYTES_PER_PROCESS = 100 << 20;
const MOST_PROCESSES = 64;
/** The first round is for a test that has little time. */
const FIRST_ROUND = { processes: 12, kills: 40 };
const LATER_ROUND = { processes: MOST_PROCESSES, kills: 160 };
/** So much is recorded between two kills, of a dozen operations or more: a busy machine takes its time for them. */
const BYTES_PER_KILL = 12_000;
/** Past the shortest TTL. */
const STOPPED_MS = [1_050, 1_600] as const;
const MOST_STOPPED = 3;
/** No more processes start at once: on two cores they would do nothing but start. */
const MOST_STARTING = 4;

const KEYS = [
  ["dir:src", "file:src/a", "file:src/b", "file:src/deep/c"],
  ["file:lib/x", "resource:db"],
  ["dir:docs", "file:docs/one"],
  ["ref:refs/heads/topic", "resource:port-8080"],
  ["file:notes"],
  ["resource:staging"],
];

export const soak: Layer = {
  name: "soak",
  unit: "kills",
  inTest: 45,
  inVerify: 1_000,
  share: 0.08,
  mustMove: [
    "kills of whoever had the mutex",
    "kills of whoever had just written",
    "stops",
    "takeovers",
    "taken from the dead",
    "taken from the late",
    "refusals",
    "unknown outcomes",
    "unknown, took effect",
    "unknown, did not",
    "reads",
    "releases",
    "grants of several keys",
    "grants bound to a process",
    "guarded writes",
    "guarded writes refused",
    "rotations",
    "through the command line",
  ],
  async prove(task) {
    const { path } = await task.bundle("tests/verify/linearizability/worker.ts");
    for (let round = 0; task.goesOn; round++) await runRound(task, path, round);
  },
};

async function runRound(task: Task, program: string, round: number): Promise<void> {
  await withCrew(fastDisk(), program, async (place, crew) => {
    const siege = new Siege(task, place, crew, new Prng(task.seed, `round ${round}`));
    await siege.run(round === 0 ? FIRST_ROUND : LATER_ROUND);
    await siege.judge();
  });
}

/** A crowd that works, and somebody who kills and stops it. */
class Siege {
  readonly #task: Task;
  readonly #place: Place;
  readonly #crew: Crew;
  readonly #chance: Prng;
  readonly #shell: CommandLine;
  readonly #asleep = new Set<Promise<void>>();
  #isOver = false;

  constructor(task: Task, place: Place, crew: Crew, chance: Prng) {
    this.#task = task;
    this.#place = place;
    this.#crew = crew;
    this.#chance = chance;
    this.#shell = new CommandLine(place, "shell", KEYS, chance.stream("shell"), {
      killShare: 0.3,
      restMs: 400,
    });
  }

  async run(round: typeof FIRST_ROUND): Promise<void> {
    const { kills } = round;
    const processes = Math.min(round.processes, Math.floor(freemem() / BYTES_PER_PROCESS));
    const typing = this.#shell.workUntil(() => this.#isOver);
    this.#task.count("processes", processes);
    for (let killed = 0; killed < kills; await nap(this.#chance.below(10))) {
      const { present } = this.#crew;
      const starting = present.filter((worker) => !worker.isAtWork).length;
      if (present.length < processes && starting < MOST_STARTING) this.#hire();
      else if (
        starting < MOST_STARTING &&
        this.#crew.recordedBytes >= killed * BYTES_PER_KILL &&
        this.#killOne()
      )
        killed++;
      if (this.#chance.chance(0.05)) this.#stopOne();
    }
    this.#isOver = true;
    await typing;
    // Whoever was stopped wakes up, and finds out. The others are killed in the middle of it.
    await Promise.all(this.#asleep);
    await nap(300);
    this.#killed(this.#crew.present.length);
    await this.#crew.dismiss();
  }

  #hire(): void {
    this.#crew.hire({
      seed: this.#chance.next(),
      sessions: 1,
      keys: KEYS,
      peers: this.#crew.present.slice(-3).map(({ name }) => `agent:${name}-0`),
      turns: Number.MAX_SAFE_INTEGER,
      napMs: 4,
      ttlSecs: [1, 1],
      boundShare: 0.4,
      leftShare: 0.02,
      waitShare: 0.15,
      waitMs: 1_500,
      rotateBytes: ROTATE_BYTES,
    });
  }

  /** Anybody; whoever is in the critical section; whoever has just written and has not said so. */
  #killOne(): boolean {
    const atWork = this.#crew.present.filter((worker) => worker.isAtWork);
    if (atWork.length === 0) return false;
    const how = this.#chance.below(3);
    if (how === 0 && killNextWriter(this.#place, atWork)) {
      this.#task.count("kills of whoever had just written");
    } else {
      const inside = how === 1 ? insider(this.#place, atWork) : undefined;
      (inside ?? this.#chance.pick(atWork)).kill();
      if (inside !== undefined) this.#task.count("kills of whoever had the mutex");
    }
    this.#killed(1);
    return true;
  }

  #killed(many: number): void {
    this.#task.tried += many;
  }

  #stopOne(): void {
    const awake = this.#crew.present.filter((worker) => worker.isAtWork && !worker.isStopped);
    if (awake.length === 0 || this.#asleep.size >= MOST_STOPPED) return;
    const sleep = this.#stopFor(this.#chance.pick(awake), this.#chance.between(...STOPPED_MS));
    this.#asleep.add(sleep);
    void sleep.then(() => this.#asleep.delete(sleep));
  }

  async #stopFor(worker: WorkerProcess, ms: number): Promise<void> {
    worker.stop();
    this.#task.count("stops");
    await nap(ms);
    worker.goOn();
  }

  async judge(): Promise<void> {
    const task = this.#task;
    const history = this.#crew.history(this.#shell.operations);
    const { broken } = check(history);
    const { violations, log, segments } = await inspect(this.#place, history.operations);
    const replay = `npm run verify -- --layer soak --seed ${task.seed}`;
    for (const what of [...history.trouble, ...this.#shell.trouble, ...broken, ...violations])
      task.broke(what, replay);
    task.tried += this.#shell.kills;
    task.count("operations", history.operations.length);
    task.count("rotations", segments - 1);
    task.count("through the command line", this.#shell.operations.length);
    task.count("taken from the dead", log.endings.get("dead") ?? 0);
    task.count("taken from the late", log.endings.get("expired") ?? 0);
    count(task, history.operations, log);
  }
}

function nap(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
