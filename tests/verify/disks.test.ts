import { describe, expect, it } from "vitest";
import { needTool } from "../house/need-tool";
import { disks } from "./disks/layer";
import { complaints, prove } from "./layer";

/** Only root can mount disks, exhaust them, and become somebody who may not write. */
describe.runIf(process.getuid?.() === 0)("full and read-only disks", () => {
  it("lose nothing, leave nothing half done, and stop no reader", async () => {
    for (const tool of ["mount", "setpriv", "strace"]) needTool(tool);
    const result = await prove(disks, { least: disks.inTest });
    expect(complaints(result)).toEqual([]);
  }, 300_000);
});
