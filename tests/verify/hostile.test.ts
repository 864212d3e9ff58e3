import { expect, it } from "vitest";
import { SEED } from "../support/sample";
import { hostile } from "./hostile/layer";
import { prove } from "./layer";

it("hostile input never crashes, never hangs, and never changes what is true", async () => {
  // So little does not meet everything that it should: `npm run verify` sees to that.
  const { tried, broke } = await prove(hostile, { least: hostile.inTest, seed: SEED + 1 });
  expect(broke).toEqual([]);
  expect(tried).toBeGreaterThanOrEqual(hostile.inTest);
}, 900_000);
