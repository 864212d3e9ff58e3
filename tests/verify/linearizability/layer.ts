import { Prng } from "../../../testing/simulator/prng";
import type { Layer, Task } from "../layer";
import { inspect } from "./aftermath";
import { killNextWriter } from "./ambush";
import { check } from "./checker";
import { CommandLine } from "./command-line";
import { type Crew, withCrew } from "./crew";
import { count } from "./figures";
import { fastDisk, loseIndex, type Place } from "./place";
import { KEYS, usualOrders } from "./usual-orders";

const PROCESSES = 4;
const SESSIONS = 4;
const TURNS_PER_SESSION = 80;
const KILLS_PER_RUN = 6;
/** So much is recorded between two incidents: of some ten operations and some hundred. */
const BYTES_BETWEEN = [10_000, 80_000] as const;

export const linearizability: Layer = {
  name: "linearizability",
  unit: "operations",
  inTest: 300,
  inVerify: 100_000,
  share: 0.08,
  mustMove: [
    "kills",
    "takeovers",
    "refusals",
    "unknown outcomes",
    "unknown, took effect",
    "unknown, did not",
    "reads",
    "releases",
    "grants of several keys",
    "transfers",
    "evictions",
    "guarded writes",
    "guarded writes refused",
    "rotations",
    "index deletions",
    "through the command line",
    "on the default disk",
  ],
  async prove(task) {
    const { path } = await task.bundle("tests/verify/linearizability/worker.ts");
    // The first run is on a disk that takes its time; after that every eighth.
    for (let run = 0; task.goesOn; run++) await runOnce(task, path, run);
  },
};

async function runOnce(task: Task, program: string, run: number): Promise<void> {
  const isOnDefaultDisk = run % 8 === 0;
  await withCrew(isOnDefaultDisk ? task.scratch : fastDisk(), program, async (place, crew) => {
    const shell = await play(task, place, crew, new Prng(task.seed, `run ${run}`), isOnDefaultDisk);
    await judge(task, place, crew, shell, isOnDefaultDisk);
  });
}

async function play(
  task: Task,
  place: Place,
  crew: Crew,
  chance: Prng,
  isSlow: boolean,
): Promise<CommandLine> {
  const orders = () => ({
    ...usualOrders([0, 1, 2, 3]),
    seed: chance.next(),
    sessions: SESSIONS,
    turns: isSlow ? TURNS_PER_SESSION / 8 : TURNS_PER_SESSION,
  });
  for (let at = 0; at < PROCESSES; at++) crew.hire(orders());
  const isOver = () => crew.present.length === 0;
  const shell = new CommandLine(place, "shell", KEYS, chance.stream("shell"), {
    killShare: 0.2,
    restMs: 300,
  });
  const typing = shell.workUntil(isOver);
  let kills = 0;
  for (let due = crew.recordedBytes + chance.between(...BYTES_BETWEEN); !isOver(); await nap(5)) {
    if (crew.recordedBytes < due) continue;
    due += chance.between(...BYTES_BETWEEN);
    if (chance.chance(0.4)) {
      loseIndex(place, chance.chance(0.5));
      task.count("index deletions");
    } else if (kills++ < KILLS_PER_RUN) {
      if (!chance.chance(0.6) || !killNextWriter(place, crew.present)) chance.pick(crew.present).kill();
      crew.hire(orders());
      task.count("kills");
    }
  }
  await typing;
  return shell;
}

async function judge(
  task: Task,
  place: Place,
  crew: Crew,
  shell: CommandLine,
  isSlow: boolean,
): Promise<void> {
  const history = crew.history(shell.operations);
  const replay = `npm run verify -- --layer linearizability --seed ${task.seed}`;
  const { broken, groups } = check(history);
  const { violations, log, segments } = await inspect(place, history.operations);
  for (const what of [...history.trouble, ...shell.trouble, ...broken, ...violations])
    task.broke(what, replay);
  task.tried += history.operations.length;
  task.count("groups", groups);
  task.count("rotations", segments - 1);
  task.count("kills", shell.kills);
  task.count("through the command line", shell.operations.length);
  if (isSlow) task.count("on the default disk", history.operations.length);
  count(task, history.operations, log);
}

function nap(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
