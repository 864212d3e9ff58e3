import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { sampleOf } from "../support/sample";
import { bundle, ROOT } from "./bundle";
import { runWith } from "./planted/layer";
import { TEST_PLANTS, type TestPlant } from "./planted/test-plants";
import { PLANTS, type PlantedBug } from "./plants";

/** Models bring mutants of their own; a disk can only be full; and plants need none themselves. */
const WITHOUT = ["models", "disks", "planted bugs", "planted tests", "whole tests", "harnesses"];

const room = mkdtempSync(join(tmpdir(), "cotenant-plants-"));
afterAll(() => rmSync(room, { recursive: true, force: true }));

/** Some of those that a layer notices within moments; `npm run verify` plants them all, for all that would notice. */
const cases = sampleOf(
  PLANTS.filter(({ inTest }) => inTest === true),
  12,
).map((plant) => ({
  plant,
  name: plant.name,
  layer: plant.caughtBy[0]!,
}));

describe("a bug put in on purpose", () => {
  it("is there for every layer that could miss one", async () => {
    // Not imported: all that the layers need, and nothing of it is used here but their names.
    const { path } = await bundle("tests/verify/one-layer.ts", room);
    const all = JSON.parse(execFileSync(process.execPath, [path], { encoding: "utf8" })) as {
      name: string;
    }[];
    const layers = all.map(({ name }) => name).filter((name) => !WITHOUT.includes(name));
    expect(layers.length).toBeGreaterThan(10);
    const noticed = new Set(PLANTS.flatMap(({ caughtBy }) => caughtBy));
    expect(layers.filter((layer) => !noticed.has(layer))).toEqual([]);
  });

  it("fits the source that it is put into, in one place", () => {
    const places = ({ file, from }: PlantedBug) =>
      readFileSync(join(ROOT, file), "utf8").split(from).length - 1;
    const all: readonly PlantedBug[] = [...PLANTS, ...TEST_PLANTS];
    expect(all.filter((plant) => places(plant) !== 1).map(({ name }) => name)).toEqual([]);
  });

  it("names a test that there is, if a test is to notice it", () => {
    const isThere = ({ test, named }: TestPlant) => {
      if (!existsSync(join(ROOT, test))) return false;
      const text = readFileSync(join(ROOT, test), "utf8");
      // Of a name that is put together from a table, at least a part.
      const parts = text.split(/["'`]|%[a-z]|\$\w+/).filter((part) => part.length > 6);
      return text.includes(named) || parts.some((part) => named.includes(part));
    };
    expect(TEST_PLANTS.filter((plant) => !isThere(plant)).map(({ name }) => name)).toEqual([]);
  });

  it.each(cases)("is noticed by $layer: $name", async ({ plant, name, layer }) => {
    const { broke } = await runWith(plant, layer, join(room, `${layer} ${name}`.replace(/\W+/g, "-")));
    expect(broke.length).toBeGreaterThan(0);
  });
});
