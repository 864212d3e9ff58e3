import { expect, it } from "vitest";
import { needTool } from "../house/need-tool";
import { sampleOf } from "../support/sample";
import { crash, error } from "./injection/layer";
import { SCENARIOS } from "./injection/scenarios";
import { complaints, prove } from "./layer";

const CORE = SCENARIOS.filter(({ isCore }) => isCore).map(({ name }) => name);

/** Each layer tries all commands in `npm run verify`: here it is one of them, another one each time. */
it.each([
  ["a death at every change", crash],
  ["a failing disk at every change", error],
])(
  "%s that a core command makes leaves a store that keeps its promises",
  async (_, layer) => {
    needTool("strace");
    for (const only of sampleOf(CORE, CORE.length)) {
      const result = await prove(layer, { least: layer.inTest, seed: 1, only });
      expect(complaints(result)).toEqual([]);
      expect(result.tried).toBeGreaterThan(10);
    }
  },
  600_000,
);
