import type { HarnessName } from "../../identity/harness";
import { below, joinPath } from "../../identity/path-text";
import type { Files } from "../../platform/platform";
import type { Found } from "./plan";
import { type Grounds, homeOf } from "./sites";

/** Whether a harness has its directory in the user's home, and there is more in it than what was made for us. */
export async function isPresent(
  files: Files,
  harness: HarnessName,
  grounds: Grounds,
  found: readonly Found[],
): Promise<boolean> {
  const home = homeOf(harness, grounds);
  const ours = found.filter(({ record }) => record?.isMade === true).map(({ site }) => site.path);
  if (home === null || (await files.stat(home)) === null) return false;
  return ours.length === 0 || hasMore(files, home, ours);
}

async function hasMore(files: Files, directory: string, ours: readonly string[]): Promise<boolean> {
  for (const name of (await files.readDirectory(directory)) ?? []) {
    const path = joinPath(directory, name);
    if (ours.includes(path)) continue;
    const isOnTheWay = ours.some((file) => below(file, path) !== null);
    if (!isOnTheWay || (await hasMore(files, path, ours))) return true;
  }
  return false;
}
