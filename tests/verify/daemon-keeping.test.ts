import { expect, it } from "vitest";
import { daemonKeeping } from "./daemon/keeping-layer";
import { complaints, prove } from "./layer";

it("an agent that lives keeps its lease without renewing it, and one that is killed loses it in time", async () => {
  const result = await prove(daemonKeeping, { least: daemonKeeping.inTest });
  expect(complaints(result)).toEqual([]);
}, 600_000);
