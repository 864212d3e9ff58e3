import { expect, it } from "vitest";
import { needTool } from "../house/need-tool";
import { complaints, prove } from "./layer";
import { CLOCKS } from "./soak/clocks-layer";

it("clocks that jump, each for itself, end no lease early and bring none back", async () => {
  needTool("faketime");
  const result = await prove(CLOCKS, { least: CLOCKS.inTest });
  expect(complaints(result)).toEqual([]);
});
