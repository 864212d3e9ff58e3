import { Prng } from "../../../src/platform/sim/prng";
import type { Layer, Task } from "../layer";
import { inspect } from "../linearizability/aftermath";
import { check } from "../linearizability/checker";
import { type Crew, withCrew } from "../linearizability/crew";
import { count } from "../linearizability/figures";
import { KEYS } from "../linearizability/layer";
import { fastDisk, type Place, ROTATE_BYTES } from "../linearizability/place";
import { Supervisor } from "./supervisor";

/** 64 clients, each one session; two of a process share a connection, and its store when it goes without. */
const CLIENTS = { processes: 4, sessions: 16 };
const BESIDE = { processes: 2, sessions: 4 };
const TURNS_PER_SESSION = 4;

/** Many clients of a daemon and some beside it, all after the same few keys (S73). The daemon lives on. */
export const crowd: Layer = {
  name: "daemon crowd",
  unit: "operations",
  inTest: 400,
  inVerify: 20_000,
  share: 0.03,
  mustMove: ["takeovers", "refusals", "releases", "requests to the daemon", "through it", "beside it"],
  async prove(task) {
    const { path: worker } = await task.bundle("tests/verify/linearizability/worker.ts");
    const { path: daemon } = await task.bundle("tests/verify/daemon/process.ts");
    for (let run = 0; task.goesOn; run++)
      await withCrew(fastDisk(), worker, (place, crew) =>
        runOnce(task, place, crew, new Supervisor(place, daemon), new Prng(task.seed, `crowd ${run}`)),
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
    for (let at = 0; at < CLIENTS.processes; at++) crew.hire(orders(chance, CLIENTS.sessions, true));
    for (let at = 0; at < BESIDE.processes; at++) crew.hire(orders(chance, BESIDE.sessions, false));
    await Promise.all(crew.workers.map(({ gone }) => gone));
  } finally {
    await supervisor.end();
  }
  const history = crew.history();
  const replay = `npm run verify -- --layer "daemon crowd" --seed ${task.seed}`;
  const { broken } = check(history);
  const { violations, log } = await inspect(place, history.operations);
  for (const what of [...history.trouble, ...supervisor.trouble, ...broken, ...violations])
    task.broke(what, replay);
  const beside = new Set(crew.workers.slice(CLIENTS.processes).map(({ name }) => name));
  for (const { caller } of history.operations) {
    const [, name] = /^\w+:(w\d+)-/.exec(caller.agent) ?? [];
    task.count(beside.has(name ?? "") ? "beside it" : "through it");
  }
  task.tried += history.operations.length;
  task.count("requests to the daemon", supervisor.requests);
  count(task, history.operations, log);
}

function orders(chance: Prng, sessions: number, isThroughDaemon: boolean) {
  return {
    seed: chance.next(),
    sessions,
    keys: KEYS,
    peers: [0, 1, 4, 5].map((at) => `agent:w${at}-${at % 2}`),
    turns: TURNS_PER_SESSION,
    napMs: 1,
    ttlSecs: [1, 2] as const,
    boundShare: 0.2,
    leftShare: 0.01,
    waitShare: 0.03,
    waitMs: 300,
    rotateBytes: ROTATE_BYTES,
    isThroughDaemon,
  };
}
