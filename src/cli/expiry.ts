import type { Workspace } from "../coordinator/workspace";
import { printable } from "../kernel/ids";
import { duration } from "../kernel/printing";

/** Words about the caller's own leases that have little of their time left. */
export async function expiryWarnings(workspace: Workspace): Promise<string[]> {
  const threshold = workspace.config.values["coordination.lease_renewal_threshold_pct"] / 100;
  const session = await workspace.session("read");
  const warnings: string[] = [];
  for (const { lease, standing, remainingMs } of await session.mine(workspace.seen)) {
    if (standing !== "valid" || remainingMs === null || lease.ttlSecs === 0) continue;
    if (remainingMs >= lease.ttlSecs * 1000 * threshold) continue;
    const noun = lease.key.startsWith("issue:") ? "claim" : "lock";
    warnings.push(
      `your lease on ${printable(lease.key)} ends in ${duration(remainingMs)}; renew it: cotenant ${noun} renew ${lease.leaseId}`,
    );
  }
  return warnings;
}
