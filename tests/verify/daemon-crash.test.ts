import { expect, it } from "vitest";
import { needTool } from "../house/need-tool";
import { daemonCrash } from "./daemon/crash-layer";
import { complaints, prove } from "./layer";

it("a death of the daemon, or of its client, at a system call loses nothing and does nothing twice", async () => {
  needTool("strace");
  const result = await prove(daemonCrash, { least: daemonCrash.inTest });
  expect(complaints(result)).toEqual([]);
}, 600_000);
