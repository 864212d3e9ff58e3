import type { CotenantError } from "../errors/cotenant-error";
import type { BlockerReport } from "../features/guard/contention";
import { printable } from "../kernel/ids";
import { duration } from "../kernel/printing";

/** The reports that come with an error, for a person to read: a line each. */
export function blockerLines({ code, data }: Pick<CotenantError, "code" | "data">): string[] {
  if (code !== "E_BLOCKED") return [];
  const { reports = [] } = data as { readonly reports?: readonly BlockerReport[] };
  return reports.map(
    ({ blocked_file, owner, lock_age_secs, last_heartbeat_at, retry_interval_secs }) =>
      `${printable(blocked_file, 200)}: held by ${owner} for ${duration(lock_age_secs * 1000)}, last heard of ${last_heartbeat_at ?? "never"}; tried again after ${retry_interval_secs} s`,
  );
}
