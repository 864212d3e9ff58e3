import type { Layer, Task } from "../layer";
import { SimStory } from "./sim-story";

/** Seeds of one run lie apart from those of the next. */
const SEEDS_APART = 1_000_003;

/** The ledger over the real kernel, store and coordinator, on simulated machines with a simulated remote. */
export const ledgerSimulation: Layer = {
  name: "ledger simulation",
  unit: "seeds",
  inTest: 20,
  inVerify: 1_000,
  share: 0.06,
  mustMove: [
    "claimed",
    "claimed offline",
    "released",
    "published",
    "publish refused: provisional",
    "publish fenced off",
    "publish unclear",
    "reconciled",
    "conflict",
    "kill",
    "cable pulled",
    "cable mended",
    "request lost",
    "answer lost",
    "partition",
    "held in the end",
    "told E_LOCK_CONFLICT",
    "told E_REMOTE_UNREACHABLE",
    "told E_FENCING_MISMATCH",
  ],

  async prove(task: Task): Promise<void> {
    for (let index = 0; task.goesOn; index++) {
      const seed = (task.seed + index * SEEDS_APART) % 0x7fffffff;
      const { broken, counts, account } = await new SimStory(seed).play();
      for (const [name, count] of counts) task.count(name, count);
      if (broken !== null)
        task.broke(
          `seed ${seed}: ${broken}\n${account.slice(-60).join("\n")}`,
          `npm run verify -- --layer "ledger simulation" --seed ${seed}`,
        );
      task.tried++;
    }
  },
};
