import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { runWith } from "./planted/layer";
import { PLANTS } from "./plants";

const room = mkdtempSync(join(tmpdir(), "cotenant-plants-"));
afterAll(() => rmSync(room, { recursive: true, force: true }));

const cases = PLANTS.flatMap((plant) => plant.caughtBy.map((layer) => ({ plant, name: plant.name, layer })));

describe("a bug put in on purpose", () => {
  it.each(cases)("is noticed by $layer: $name", async ({ plant, name, layer }) => {
    const { broke } = await runWith(plant, layer, join(room, `${layer} ${name}`.replace(/\W+/g, "-")));
    expect(broke.length).toBeGreaterThan(0);
  });
});
