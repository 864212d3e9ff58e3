import { HARNESS_NAMES } from "../../identity/harness";
import { joinPath, nameIn, parentOf } from "../../identity/path-text";
import type { Platform } from "../../platform/platform";
import type { Shelf } from "./record";
import { type Grounds, sitesOf } from "./sites";

const UNFINISHED = /^(.+)\.new-[0-9a-f]{12}$/;

/** Files that a writer of settings, or of what is remembered of them, left when it was killed. */
export async function tidyAgents(
  platform: Platform,
  shelf: Shelf,
  grounds: Grounds,
  recentMs: number,
): Promise<void> {
  await clearUnfinished(platform, shelf.directory, () => true, recentMs);
  for (const harness of HARNESS_NAMES)
    for (const { path } of sitesOf(harness, "project", grounds))
      await clearUnfinished(platform, parentOf(path) ?? "/", (name) => name === nameIn(path), recentMs);
}

/** Only what is old enough: a younger one may have its writer still. */
export async function clearUnfinished(
  { files, clock }: Platform,
  directory: string,
  isOurs: (name: string) => boolean,
  recentMs: number,
): Promise<void> {
  for (const entry of (await files.readDirectory(directory)) ?? []) {
    const [, name] = UNFINISHED.exec(entry) ?? [];
    if (name === undefined || !isOurs(name)) continue;
    const path = joinPath(directory, entry);
    const mtimeMs = (await files.lstat(path))?.mtimeMs ?? Number.POSITIVE_INFINITY;
    if (mtimeMs < clock.wallMs() - recentMs) await files.unlink(path);
  }
}
