import { expect, it } from "vitest";
import { complaints, prove } from "./layer";
import { LINEARIZABILITY } from "./linearizability/layer";

it("every history of contending processes is linearizable", async () => {
  const result = await prove(LINEARIZABILITY, { least: LINEARIZABILITY.inTest });
  expect(complaints(result)).toEqual([]);
});
