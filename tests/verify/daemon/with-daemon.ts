import { Prng } from "../../../testing/simulator/prng";
import type { Task } from "../layer";
import { inspect } from "../linearizability/aftermath";
import { check } from "../linearizability/checker";
import { type Crew, withCrew } from "../linearizability/crew";
import { count } from "../linearizability/figures";
import { fastDisk } from "../linearizability/place";
import { Supervisor } from "./supervisor";

export interface Scene {
  readonly crew: Crew;
  readonly supervisor: Supervisor;
  readonly chance: Prng;
}

type History = ReturnType<Crew["history"]>;

/** Workers and a daemon in a fresh repository, again until enough was tried; each history is judged when all are gone. */
export async function playWithDaemon(
  task: Task,
  layer: string,
  play: (scene: Scene) => Promise<void>,
  onHistory: (history: History, crew: Crew) => void = () => {},
): Promise<void> {
  const { path: worker } = await task.bundle("tests/verify/linearizability/worker.ts");
  const { path: daemon } = await task.bundle("tests/verify/daemon/process.ts");
  const replay = `npm run verify -- --layer "${layer}" --seed ${task.seed}`;
  for (let run = 0; task.goesOn; run++)
    await withCrew(fastDisk(), worker, async (place, crew) => {
      const supervisor = new Supervisor(place, daemon);
      try {
        await supervisor.start();
        await play({ crew, supervisor, chance: new Prng(task.seed, `run ${run}`) });
      } finally {
        await supervisor.end();
      }
      const history = crew.history();
      const { broken } = check(history);
      const { violations, log } = await inspect(place, history.operations);
      for (const what of [...history.trouble, ...supervisor.trouble, ...broken, ...violations])
        task.broke(what, replay);
      onHistory(history, crew);
      task.tried += history.operations.length;
      task.count("requests to the daemon", supervisor.requests);
      count(task, history.operations, log);
    });
}
