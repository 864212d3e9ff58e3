import { it } from "vitest";
import { getCurrentSuite } from "vitest/suite";
import { SEED, TRIES_ALL } from "./sample";

/** Each numbered scenario is in every run. */
const SCENARIO = /^S\d/;

/**
 * In the place of Vitest's `it`, for a file of costly tests: in a sample the first of the file, the first of every numbered
 * scenario, and one in `of` of the others.
 */
export function oneIn(of: number): typeof it {
  if (TRIES_ALL) return it;
  const begun = new Set<unknown>();
  let others = SEED;
  const isTaken = (name: unknown): boolean => {
    const suite = getCurrentSuite();
    const isFirst = begun.size === 0 || (SCENARIO.test(suite.name) && !begun.has(suite));
    begun.add(suite);
    return isFirst || SCENARIO.test(String(name)) || others++ % of === 0;
  };
  type Test = (name: unknown, ...rest: unknown[]) => void;
  const each =
    (rows: readonly unknown[]): Test =>
    (name, ...rest) =>
      (it.each(rows.filter(() => isTaken(name))) as Test)(name, ...rest);
  const sampled = new Proxy(it, {
    apply: (_target, _this, [name, ...rest]) => {
      if (isTaken(name)) (it as Test)(name, ...rest);
    },
    get(target, key) {
      if (key === "each") return each;
      return key === "runIf"
        ? (may: boolean) => (may ? sampled : target.runIf(false))
        : Reflect.get(target, key);
    },
  });
  return sampled;
}
