import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LogFiles } from "../../../testing/checker/log-files";
import { Prng } from "../../../testing/simulator/prng";
import { clearAfterTheDead, wallClockEnv } from "../../support/faketime";
import type { Layer, Task } from "../layer";
import { inspect } from "../linearizability/aftermath";
import { check } from "../linearizability/checker";
import { Crew } from "../linearizability/crew";
import { count } from "../linearizability/figures";
import { clear, fastDisk, makePlace, type Place, ROTATE_BYTES } from "../linearizability/place";

const PROCESSES = 5;
const JUMPS_PER_ROUND = 50;
/** So much is recorded between two jumps, of a few operations or more: a busy machine takes its time for them. */
const BYTES_PER_JUMP = 14_000;
const FAR_OFF = ["+90s", "-90s", "+2h", "-2h", "+3d", "-3d"];
const OFFSETS = ["+0", "+3s", "-3s", ...FAR_OFF];
/** Many times what anybody waits for. */
const PATIENCE_MS = 30_000;
const OFF_MS = 60_000;

const KEYS = [["dir:src", "file:src/a", "file:src/b"], ["resource:db"], ["file:notes", "resource:port"]];

export const clocks: Layer = {
  name: "clocks",
  unit: "jumps",
  inTest: JUMPS_PER_ROUND,
  inVerify: 4 * JUMPS_PER_ROUND,
  share: 0.03,
  mustMove: [
    "lines by a clock that is off",
    "takeovers",
    "taken from the late",
    "refusals",
    "reads",
    "releases",
    "waits that ended",
    "guarded writes",
  ],
  async prove(task) {
    const { path } = await task.bundle("tests/verify/linearizability/worker.ts");
    for (let round = 0; task.goesOn; round++) await runRound(task, path, round);
  },
};

async function runRound(task: Task, program: string, round: number): Promise<void> {
  const place = makePlace(fastDisk());
  const crew = new Crew(place, program, {
    ...wallClockEnv(),
    // The file is read anew for every question: the clock of a running process jumps when it changes.
    FAKETIME_NO_CACHE: "1",
  });
  try {
    await play(task, place, crew, new Prng(task.seed, `round ${round}`));
    await judge(task, place, crew);
  } finally {
    await crew.dismiss();
    clear(place);
    clearAfterTheDead();
  }
}

async function play(task: Task, place: Place, crew: Crew, chance: Prng): Promise<void> {
  const clocks = [...Array(PROCESSES).keys()].map((at) => join(place.folder, `clock-${at}`));
  for (const clock of clocks) {
    // Different from the start.
    set(clock, chance.pick(FAR_OFF));
    crew.hire(ordersWith(chance.next()), { FAKETIME_TIMESTAMP_FILE: clock });
  }
  while (crew.workers.some((worker) => !worker.isAtWork && !worker.isGone)) await nap(10);
  for (let jumps = 0; jumps < JUMPS_PER_ROUND; await nap(chance.between(40, 200))) {
    if (crew.recordedBytes < jumps * BYTES_PER_JUMP) continue;
    jumps++;
    set(chance.pick(clocks), chance.pick(OFFSETS));
    task.tried++;
  }
  for (const worker of crew.present) worker.leave();
  await Promise.race([Promise.all(crew.workers.map(({ gone }) => gone)), nap(PATIENCE_MS)]);
  for (const { name } of crew.present)
    task.broke(`${name} still waits for something after ${PATIENCE_MS} ms`, replayOf(task));
}

function ordersWith(seed: number) {
  return {
    seed,
    sessions: 3,
    keys: KEYS,
    peers: [],
    turns: Number.MAX_SAFE_INTEGER,
    napMs: 3,
    ttlSecs: [1, 1] as const,
    boundShare: 0,
    leftShare: 0.3,
    waitShare: 0.1,
    waitMs: 1_500,
    rotateBytes: ROTATE_BYTES,
  };
}

/** Whole at every instant: half a number would be another time. */
function set(clock: string, offset: string): void {
  writeFileSync(`${clock}.new`, `${offset}\n`);
  renameSync(`${clock}.new`, clock);
}

async function judge(task: Task, place: Place, crew: Crew): Promise<void> {
  const history = crew.history();
  const { broken } = check(history);
  const { violations, log, segments } = await inspect(place, history.operations);
  for (const what of [...history.trouble, ...broken, ...violations]) task.broke(what, replayOf(task));
  task.count("operations", history.operations.length);
  task.count("rotations", segments - 1);
  task.count("taken from the late", log.endings.get("expired") ?? 0);
  task.count("lines by a clock that is off", linesOff(place));
  const waits = history.operations.filter(
    ({ answer }) => answer.is === "refused" && answer.code === "E_WAIT_TIMEOUT",
  );
  task.count("waits that ended", waits.length);
  count(task, history.operations, log);
}

/** That the clocks of the workers were really off shows in what they wrote. */
function linesOff({ control }: Place): number {
  const lines = new LogFiles(control).read().map((line) => JSON.parse(line) as { timestamp: string });
  return lines.filter(({ timestamp }) => Math.abs(Date.parse(timestamp) - Date.now()) > OFF_MS).length;
}

function replayOf(task: Task): string {
  return `npm run verify -- --layer clocks --seed ${task.seed}`;
}

function nap(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
