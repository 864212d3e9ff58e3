import { LocalCoordinator } from "../coordinator/local";
import { DEFAULT_POLICY } from "../kernel/policy";
import type { Platform } from "../platform/platform";
import { DEFAULT_STORE_OPTIONS, Store } from "../store/store";

/** The control plane of a repository that people push to; null where it has none, and nobody can testify there. */
export async function serverCoordinator(
  platform: Platform,
  gitDir: string,
): Promise<LocalCoordinator | null> {
  const controlDirectory = `${gitDir}/cotenant`;
  if ((await platform.files.stat(`${controlDirectory}/claims.jsonl`)) === null) return null;
  return new LocalCoordinator(
    new Store(platform, { ...DEFAULT_STORE_OPTIONS, controlDirectory }),
    DEFAULT_POLICY,
  );
}
