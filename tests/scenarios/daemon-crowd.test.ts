import { expect, it } from "vitest";
import { crowd } from "../verify/daemon/crowd-layer";
import { complaints, prove } from "../verify/layer";

it("S73: 64 clients through the daemon and 8 beside it at once see one order, and nothing is granted twice", async () => {
  const result = await prove(crowd, { least: crowd.inTest });
  expect(complaints(result)).toEqual([]);
}, 600_000);
