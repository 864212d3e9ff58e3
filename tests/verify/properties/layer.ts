import fc from "fast-check";
import { histories, OCCURRENCES, runHistory } from "../../kernel/histories";
import type { Layer } from "../layer";

/** Histories between two looks at the clock. */
const BATCH = 1_000;

/** The kernel against a plain model of its rules, over random histories of commands, clocks and deaths. */
export const properties: Layer = {
  name: "properties",
  unit: "histories",
  inTest: 2_000,
  inVerify: 100_000,
  share: 0.03,
  mustMove: OCCURRENCES,
  async prove(task) {
    while (task.goesOn) {
      const seed = (task.seed + task.tried) | 0;
      const history = fc.property(histories, (history) => runHistory(history, (what) => task.count(what)));
      const details = fc.check(history, { numRuns: BATCH, seed });
      task.tried += details.numRuns;
      if (details.failed)
        task.broke(
          fc.defaultReportMessage(details) ?? "",
          `npm run verify -- --layer properties --seed ${seed}`,
        );
      // Vitest gets a word in.
      await new Promise((resolve) => setImmediate(resolve));
    }
  },
};
