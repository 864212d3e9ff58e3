import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { afterEveryTest } from "./after-tests";
import { removeTree } from "./remove-tree";

const made: string[] = [];
afterEveryTest(() => {
  for (const dir of made.splice(0)) removeTree(dir);
});

/** A directory that is gone after the test. */
export function scratch(name = "cotenant-test", below = os.tmpdir()): string {
  const dir = fs.realpathSync(fs.mkdtempSync(path.join(below, `${name}-`)));
  made.push(dir);
  return dir;
}

/** The same in memory, where there is enough of it: for tests that write very often and mean no disk. */
export function scratchInMemory(): string {
  return scratch("cotenant-test", process.env["TEST_MEMORY"]);
}
