import type { Talk } from "../../../../src/features/harnesses/real-canary/conversation";
import { AT_ONCE, type Stage } from "../stage";
import type { Cell, Group, Trial } from "./cell";

const PACE: Cell = { name: "pace", title: "what hooks add to a new file, an edit again and a shell command" };

/** Some programs ask the model whether it goes in circles after thirty calls. */
const ROUNDS = 6;
const STEPS = ["new", "again", "shell"] as const;
type Took = Readonly<Record<(typeof STEPS)[number], number[]>>;

/** From the call of a tool to its answer, as the model sees it, with the guard and without. Figures only: nothing here can break. */
export const pacing: Group = {
  cells: [PACE],
  play: (trial) =>
    trial.check(PACE, async () => {
      const without = await timed(trial, false);
      const guarded = await timed(trial, true);
      const added = STEPS.map(
        (step) => `${step} +${Math.round(median(guarded[step]) - median(without[step]))}`,
      );
      return `${added.join(", ")} ms`;
    }),
};

async function timed(trial: Trial, isInstalled: boolean): Promise<Took> {
  const took: Took = { new: [], again: [], shell: [] };
  await trial.on({ ...AT_ONCE, isInstalled }, async (stage) => {
    await stage.playThrough(async (talk) => {
      for (let round = 0; round < ROUNDS; round++) await once(trial, stage, talk, took, round);
      return "done";
    });
  });
  return took;
}

async function once(trial: Trial, stage: Stage, talk: Talk, took: Took, round: number): Promise<void> {
  const file = stage.file(`pace-${round}.txt`);
  const clock = async (step: (typeof STEPS)[number], act: () => Promise<unknown>) => {
    const begunMs = performance.now();
    await act();
    // The first time pays for much besides.
    if (round > 0) took[step].push(performance.now() - begunMs);
  };
  await clock("new", () => talk.use(trial.program.tools.write(file, "one\ntwo\nthree\n")));
  await stage.edit(talk, `pace-${round}.txt`, "two", "TWO");
  await clock("again", () => stage.edit(talk, `pace-${round}.txt`, "three", "THREE"));
  await clock("shell", () => stage.shell(talk, "node -e 0"));
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}
