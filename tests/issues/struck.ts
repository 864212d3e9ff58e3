import type { SimWorld } from "../../testing/simulator";
import { busyWorld, simSeeds } from "../store/stage";
import { stride } from "../support/sample";

type Victim = ReturnType<SimWorld["spawn"]>;
type Strike = (made: SimWorld, victim: Victim) => void;

export const STRIKES: readonly (readonly [string, Strike])[] = [
  ["killed", (made, victim) => made.kill(victim)],
  ["without power", (made) => made.powerCut()],
];

/** One world in which somebody is struck after so many operations of its own. */
export interface Struck {
  readonly made: SimWorld;
  /** Lets the victim's work go on until it is struck, or done. */
  strike(victim: Victim): Promise<void>;
}

/** Tries every operation, or a sample of them: until there is one that the victim does not come to. */
export async function atEveryOperation(
  most: number,
  sample: number,
  strikeBy: Strike,
  story: (struck: Struck) => Promise<void>,
): Promise<void> {
  for (const seed of simSeeds(2)) {
    const { first, step } = stride(sample);
    let isStruck = true;
    for (let at = first; isStruck; at += step) {
      if (at > most) throw new Error(`it takes more than ${most} operations`);
      isStruck = false;
      const made = busyWorld(seed * 1_000 + at, { traceLimit: 300, writebackProbability: 0.05 });
      const strike = async (victim: Victim) => {
        let done = 0;
        await made.run({
          beforeStep: () => {
            if (done++ !== at) return;
            isStruck = true;
            strikeBy(made, victim);
          },
        });
      };
      try {
        await story({ made, strike });
      } catch (error) {
        throw new Error(`seed ${seed}, struck at operation ${at}: ${error}\n${made.trace}`, { cause: error });
      }
    }
  }
}
