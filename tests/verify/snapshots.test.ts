import { expect, it } from "vitest";
import { complaints, prove } from "./layer";
import { snapshots } from "./snapshots/layer";

it("random trees come back as they were, byte for byte", async () => {
  const result = await prove(snapshots, { least: snapshots.inTest });
  expect(complaints(result)).toEqual([]);
}, 900_000);
