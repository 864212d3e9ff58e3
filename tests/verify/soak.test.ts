import { expect, it } from "vitest";
import { complaints, prove } from "./layer";
import { SOAK } from "./soak/layer";

it("a crowd that is killed and stopped at any instant keeps every promise", async () => {
  const result = await prove(SOAK, { least: SOAK.inTest });
  expect(complaints(result)).toEqual([]);
});
