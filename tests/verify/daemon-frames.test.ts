import { expect, it } from "vitest";
import { daemonFrames } from "./daemon/frames-layer";
import { complaints, prove } from "./layer";

it("nothing comes of frames that make no sense, and the daemon goes on", async () => {
  const result = await prove(daemonFrames, { least: daemonFrames.inTest });
  expect(complaints(result)).toEqual([]);
}, 600_000);
