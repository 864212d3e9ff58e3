import { Prng } from "../../../src/platform/sim/prng";
import type { Layer, Task } from "../layer";
import { inspect } from "../linearizability/aftermath";
import { check } from "../linearizability/checker";
import { type Crew, withCrew } from "../linearizability/crew";
import { count } from "../linearizability/figures";
import { KEYS } from "../linearizability/layer";
import { fastDisk, type Place, ROTATE_BYTES } from "../linearizability/place";
import { Supervisor } from "./supervisor";

const PROCESSES = 4;
const SESSIONS = 4;
const TURNS_PER_SESSION = 60;
/** So much is recorded between two incidents. */
const BYTES_BETWEEN = [6_000, 30_000] as const;
/** Longer than clients wait for somebody who says nothing. */
const FREEZE_MS = 2_600;
const FREEZES_PER_RUN = 1;

/** Clients of a daemon that dies, is stopped and comes back, with others that go without it (S72, S73). */
export const daemonKills: Layer = {
  name: "daemon",
  unit: "operations",
  inTest: 600,
  inVerify: 20_000,
  share: 0.06,
  mustMove: ["daemon kills", "daemon freezes", "takeovers", "refusals", "releases", "requests to the daemon"],
  async prove(task) {
    const { path: worker } = await task.bundle("tests/verify/linearizability/worker.ts");
    const { path: daemon } = await task.bundle("tests/verify/daemon/process.ts");
    for (let run = 0; task.goesOn; run++)
      await withCrew(fastDisk(), worker, (place, crew) =>
        runOnce(task, place, crew, new Supervisor(place, daemon), new Prng(task.seed, `run ${run}`)),
      );
  },
};

async function runOnce(
  task: Task,
  place: Place,
  crew: Crew,
  supervisor: Supervisor,
  chance: Prng,
): Promise<void> {
  try {
    await supervisor.start();
    await play(task, crew, supervisor, chance);
  } finally {
    await supervisor.end();
  }
  const history = crew.history();
  const replay = `npm run verify -- --layer daemon --seed ${task.seed}`;
  const { broken } = check(history);
  const { violations, log } = await inspect(place, history.operations);
  for (const what of [...history.trouble, ...supervisor.trouble, ...broken, ...violations])
    task.broke(what, replay);
  task.tried += history.operations.length;
  task.count("requests to the daemon", supervisor.requests);
  count(task, history.operations, log);
}

async function play(task: Task, crew: Crew, supervisor: Supervisor, chance: Prng): Promise<void> {
  for (let at = 0; at < PROCESSES; at++)
    crew.hire({
      seed: chance.next(),
      sessions: SESSIONS,
      keys: KEYS,
      peers: [0, 1, 2, 3].map((one) => `agent:w${one}-${one % 2}`),
      turns: TURNS_PER_SESSION,
      napMs: 1,
      ttlSecs: [1, 2] as const,
      boundShare: 0.2,
      leftShare: 0.01,
      waitShare: 0.03,
      waitMs: 300,
      rotateBytes: ROTATE_BYTES,
      // The last one does not know of the daemon.
      isThroughDaemon: at < PROCESSES - 1,
    });
  const isOver = () => crew.present.length === 0;
  let freezes = 0;
  for (let due = crew.recordedBytes + chance.between(...BYTES_BETWEEN); !isOver(); await nap(5)) {
    if (crew.recordedBytes < due) continue;
    if (freezes < FREEZES_PER_RUN && chance.chance(0.2)) {
      freezes++;
      await supervisor.freeze(FREEZE_MS);
      task.count("daemon freezes");
    } else {
      await supervisor.kill();
      task.count("daemon kills");
      if (chance.chance(0.3)) await nap(chance.below(200));
      await supervisor.start();
    }
    // From when it can be asked again.
    due = crew.recordedBytes + chance.between(...BYTES_BETWEEN);
  }
}

function nap(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
