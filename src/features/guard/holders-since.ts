import type { Coordinator, LoggedEvent } from "../../coordinator/contract";
import { keysConflict } from "../../kernel/conflicts";
import type { Lease, Reach } from "../../kernel/lease";
import { leaseFromWire } from "../../store/wire";
import { type Contention, type Owner, ownerOf } from "./contention";

/**
 * Who has held it since somebody was denied, in order, the one of the denial first. The record of a denial knows only that
 * one; others may have had it, and given it back, before anybody looked again.
 */
export async function holdersSince(
  coordinator: Pick<Coordinator, "history">,
  contention: Contention,
  reach: Reach,
): Promise<[Owner, ...Owner[]]> {
  const { owner, key, worktreeId, agentId, deniedAt } = contention;
  const found: [Owner, ...Owner[]] = [owner];
  for await (const event of coordinator.history({ from: { timeMs: deniedAt.wallMs } }))
    for (const lease of leasesIn(event)) {
      const isSame =
        keysConflict(key, lease.key) &&
        (lease.worktreeId === worktreeId || lease.reach === "repository" || reach === "repository");
      if (!isSame || lease.agentId === agentId) continue;
      // Last things last: whoever had it twice counts for the second time.
      const at = found.findIndex((earlier) => earlier.agentId === lease.agentId);
      if (at > 0) found.splice(at, 1);
      if (at !== 0 || found.length > 1) found.push(ownerOf(lease));
    }
  return found;
}

function leasesIn({ payload }: LoggedEvent): Lease[] {
  const { leases } = payload;
  if (!Array.isArray(leases)) return [];
  try {
    return leases.map(leaseFromWire);
  } catch {
    // Of a newer version.
    return [];
  }
}
