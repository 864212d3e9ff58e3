import { expect, it } from "vitest";
import { daemonMemory } from "./daemon/memory-layer";
import { complaints, prove } from "./layer";

it("a daemon holds no more the longer it is asked", async () => {
  const result = await prove(daemonMemory, { least: daemonMemory.inTest });
  expect(complaints(result)).toEqual([]);
}, 600_000);
