import * as fs from "node:fs";
import * as path from "node:path";

declare const __COTENANT_BUNDLED__: boolean | undefined;

/** Where it cannot be read. */
export const UNKNOWN_BUILD = "unknown";

/** Which build this program is of, as it is on the disk now: all parts of one build have the same. */
export function thisBuild(): string {
  if (typeof __COTENANT_BUNDLED__ === "undefined") return "unbuilt";
  try {
    return fs.readFileSync(path.join(__dirname, "build-id"), "utf8").trim();
  } catch {
    return UNKNOWN_BUILD;
  }
}
