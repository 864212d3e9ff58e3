import { expect, it } from "vitest";
import { daemonKills } from "./daemon/layer";
import { complaints, prove } from "./layer";

it("clients of a daemon that dies lose nothing, and nobody gets anything twice", async () => {
  const result = await prove(daemonKills, { least: daemonKills.inTest });
  expect(complaints(result)).toEqual([]);
}, 600_000);
