import { expect, it } from "vitest";
import { complaints, prove } from "./layer";
import { soak } from "./soak/layer";

it("a crowd that is killed and stopped at any instant keeps every promise", async () => {
  const result = await prove(soak, { least: soak.inTest });
  expect(complaints(result)).toEqual([]);
}, 600_000);
