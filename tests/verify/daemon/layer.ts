import type { Layer, Task } from "../layer";
import { usualOrders } from "../linearizability/usual-orders";
import { playWithDaemon, type Scene } from "./with-daemon";

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
  prove: (task) => playWithDaemon(task, daemonKills.name, (scene) => play(task, scene)),
};

async function play(task: Task, { crew, supervisor, chance }: Scene): Promise<void> {
  for (let at = 0; at < PROCESSES; at++)
    crew.hire({
      ...usualOrders([0, 1, 2, 3]),
      seed: chance.next(),
      sessions: SESSIONS,
      turns: TURNS_PER_SESSION,
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
