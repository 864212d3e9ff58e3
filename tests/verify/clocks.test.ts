import { expect, it } from "vitest";
import { complaints, prove } from "./layer";
import { clocks } from "./soak/clocks-layer";

it("clocks that jump, each for itself, end no lease early and bring none back", async () => {
  const result = await prove(clocks, { least: clocks.inTest });
  expect(complaints(result)).toEqual([]);
}, 600_000);
