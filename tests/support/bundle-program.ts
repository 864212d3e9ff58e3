import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundle } from "../verify/bundle";

/** Before the first end-to-end test: the program as one file, from which `runHere` takes it. */
export default async function setup(): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), "cotenant-program-"));
  const { path } = await bundle("tests/support/whole-program.ts", folder);
  // Workers copy this process's environment when they start.
  process.env["TEST_WHOLE_PROGRAM"] = path;
  return () => rmSync(folder, { recursive: true, force: true });
}
