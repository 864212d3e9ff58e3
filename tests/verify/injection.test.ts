import { expect, it } from "vitest";
import { needTool } from "../house/need-tool";
import { crash, error } from "./injection/layer";
import { SCENARIOS } from "./injection/scenarios";
import { complaints, prove } from "./layer";

const CORE = SCENARIOS.filter(({ isCore }) => isCore).map(({ name }) => name);
/** On a machine that does nothing else: half a minute each. */
const timeout = 600_000;

it.each([
  ["a death at every change", crash],
  ["a failing disk at every change", error],
])("%s that a core command makes leaves a store that keeps its promises", { timeout }, async (_, layer) => {
  needTool("strace");
  const result = await prove(layer, { least: layer.inTest });
  expect(complaints(result)).toEqual([]);
  const finished = CORE.filter((name) => (result.counters[`points of ${name}`] ?? 0) > 0);
  expect(finished).toEqual(CORE);
});
