import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { LAYERS } from "./layers";
import { runWith } from "./planted/layer";
import { PLANTS } from "./plants";

/** Models bring mutants of their own; a disk can only be full; and plants need none themselves. */
const WITHOUT = ["models", "disks", "planted bugs"];

const room = mkdtempSync(join(tmpdir(), "cotenant-plants-"));
afterAll(() => rmSync(room, { recursive: true, force: true }));

/** Quick ones, of each kind and for each layer; `npm run verify` plants them all. */
const cases = PLANTS.filter((plant) => plant.inTest === true).flatMap((plant) =>
  plant.caughtBy.map((layer) => ({ plant, name: plant.name, layer })),
);

describe("a bug put in on purpose", () => {
  it("is there for every layer that could miss one", () => {
    const layers = LAYERS.map(({ name }) => name).filter((name) => !WITHOUT.includes(name));
    expect(layers.filter((layer) => !cases.some((planted) => planted.layer === layer))).toEqual([]);
  });

  it.each(cases)("is noticed by $layer: $name", async ({ plant, name, layer }) => {
    const { broke } = await runWith(plant, layer, join(room, `${layer} ${name}`.replace(/\W+/g, "-")));
    expect(broke.length).toBeGreaterThan(0);
  });
});
