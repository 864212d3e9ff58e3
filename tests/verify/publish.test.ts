import { expect, it } from "vitest";
import { needTool } from "../house/need-tool";
import { complaints, prove } from "./layer";
import { publishCrash } from "./publishing/crash-layer";

/** On a machine that does nothing else: half a minute. */
const timeout = 900_000;

it("a death or a failing disk at any change of a publish leaves the branch old or new, and the next one works", {
  timeout,
}, async () => {
  needTool("strace");
  const result = await prove(publishCrash, { least: publishCrash.inTest });
  expect(complaints(result)).toEqual([]);
});
