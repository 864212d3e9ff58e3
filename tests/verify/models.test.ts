import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { describedMutants, MODELS, search } from "./models/layer";

const room = mkdtempSync(join(tmpdir(), "cotenant-models-"));
afterAll(() => rmSync(room, { recursive: true, force: true }));

describe.each(MODELS)("the model $name", (model) => {
  it("keeps its promise in every state", async () => {
    const { states, violation } = await search(model, 0, [], join(room, `${model.name}-0`));
    expect(violation).toBe(null);
    expect(states).toBeGreaterThan(1_000);
  });

  const mutants = Array.from({ length: model.mutants }, (_, i) => i + 1);
  it.each(mutants)("breaks it as mutant %i", async (mutant) => {
    const { violation } = await search(model, mutant, [], join(room, `${model.name}-${mutant}`));
    expect(violation).toContain("assertion violated");
  });

  it("says what each mutant is", () => {
    expect(describedMutants(model)).toBe(model.mutants);
  });
});
