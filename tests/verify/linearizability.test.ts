import { expect, it } from "vitest";
import { complaints, prove } from "./layer";
import { linearizability } from "./linearizability/layer";

it("every history of contending processes is linearizable", async () => {
  const result = await prove(linearizability, { least: linearizability.inTest });
  expect(complaints(result)).toEqual([]);
}, 600_000);
