import { expect, it } from "vitest";
import { needTool } from "../house/need-tool";
import { complaints, prove } from "./layer";
import { publishCrash } from "./publishing/crash-layer";
import { publishers } from "./publishing/crowd-layer";

/** On a machine that does nothing else: half a minute. */
const timeout = 900_000;

it("a death or a failing disk at any change of a publish leaves the branch old or new, and the next one works", {
  timeout,
}, async () => {
  needTool("strace");
  const result = await prove(publishCrash, { least: publishCrash.inTest });
  expect(complaints(result)).toEqual([]);
});

it("publishers that are killed at any moment lose nothing that was acknowledged", { timeout }, async () => {
  const result = await prove(publishers, { least: publishers.inTest });
  expect(complaints(result)).toEqual([]);
});
