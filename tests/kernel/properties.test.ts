import { expect, test } from "vitest";
import { complaints, prove } from "../verify/layer";
import { properties } from "../verify/properties/layer";
import { askedSeed, propertyRuns } from "./property";

const RUNS = propertyRuns();

test("random histories: the kernel decides as the plain model does, and keeps its promises", {
  timeout: 180_000 + RUNS * 10,
}, async () => {
  // Without a seed it goes on until everything has happened, however rare.
  const seed = askedSeed();
  const result = await prove(properties, { least: RUNS, ...(seed === null ? {} : { seed }) });
  if (process.env["TEST_PROPERTY_TABLE"] !== undefined) console.table(result.counters);
  expect(complaints(result)).toEqual([]);
});
