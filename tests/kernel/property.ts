import { amount } from "../support/sample";

/** How many random cases each property tries. vitest.config.ts lets TEST_* through to the tests. */
export function propertyRuns(): number {
  const asked = process.env["COTENANT_PROPERTY_RUNS"] ?? process.env["TEST_PROPERTY_RUNS"];
  const runs = asked === undefined ? amount(10_000, 5) : Number(asked);
  if (!Number.isInteger(runs) || runs < 1) throw new Error(`COTENANT_PROPERTY_RUNS is ${asked}`);
  return runs;
}

/** A seed to repeat a failure with; fast-check prints the one it used. */
export function propertySeed(): number {
  return askedSeed() ?? Math.floor(Math.random() * 0x7fffffff);
}

export function askedSeed(): number | null {
  const asked = process.env["COTENANT_PROPERTY_SEED"] ?? process.env["TEST_PROPERTY_SEED"];
  return asked === undefined ? null : Number(asked);
}
