import { expect, test } from "vitest";
import { complaints, prove } from "../verify/layer";
import { properties } from "../verify/properties/layer";
import { propertyRuns, propertySeed } from "./property";

const RUNS = propertyRuns();

test("random histories: the kernel decides as the plain model does, and keeps its promises", {
  timeout: 180_000 + RUNS * 10,
}, async () => {
  const result = await prove(properties, { least: RUNS, seed: propertySeed() });
  if (process.env["TEST_PROPERTY_TABLE"] !== undefined) console.table(result.counters);
  expect(complaints(result)).toEqual([]);
});
