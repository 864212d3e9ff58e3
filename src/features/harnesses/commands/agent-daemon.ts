import { standingOf } from "../../../daemon/life";
import { daemonPlace } from "../../../daemon/place";
import type { Platform } from "../../../platform/platform";

/** What the daemon of a repository has done for harnesses so far. */
export interface GuardDaemon {
  /** By harness. */
  readonly events: Readonly<Record<string, number>>;
  /** Where it is asked over HTTP; null where it is not. */
  readonly httpPort: number | null;
}

/** Null where it does not answer, or does not answer hooks. */
export async function guardDaemon(
  platform: Platform,
  controlDir: string | null,
): Promise<GuardDaemon | null> {
  if (controlDir === null) return null;
  const standing = await standingOf(platform, daemonPlace(controlDir));
  if (standing.state !== "running") return null;
  const { guard } = standing.said as { guard?: { by_harness?: unknown; http_port?: unknown } };
  if (typeof guard?.by_harness !== "object" || guard.by_harness === null) return null;
  const events = guard.by_harness as Record<string, number>;
  return { events, httpPort: typeof guard.http_port === "number" ? guard.http_port : null };
}
