import { describe, expect, it } from "vitest";
import { needTool } from "../house/need-tool";
import { crash, error } from "./injection/layer";
import { SCENARIOS } from "./injection/scenarios";
import { complaints, type Layer, prove } from "./layer";

const CORE = SCENARIOS.filter(({ isCore }) => isCore).map(({ name }) => name);

describe("a fault at every system call", () => {
  it.each<[string, Layer]>([
    ["a death", crash],
    ["a failing disk", error],
  ])(
    "%s leaves a store that works, and everything that was promised",
    { timeout: 180_000 },
    async (_, layer) => {
      needTool("strace");
      const result = await prove(layer, { least: layer.inTest });
      expect(complaints(result)).toEqual([]);
      const finished = CORE.filter((name) => (result.counters[`points of ${name}`] ?? 0) > 0);
      expect(finished, "commands of which every point was tried").toEqual(
        layer === crash ? CORE : CORE.slice(0, 4),
      );
    },
  );
});
