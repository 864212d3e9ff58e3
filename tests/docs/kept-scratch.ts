import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEveryFile } from "../support/after-tests";

/** A directory for all tests of one file, gone after the last of them. */
export function keptScratch(name: string): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), `${name}-`)));
  made.push(directory);
  return directory;
}

const made: string[] = [];
afterEveryFile(() => {
  for (const directory of made.splice(0)) rmSync(directory, { recursive: true, force: true });
});
