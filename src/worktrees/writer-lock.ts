import type { Grant } from "../coordinator/contract";
import type { Session } from "../coordinator/session";
import { orThrow } from "../errors/cotenant-error";
import type { WorktreeId } from "../kernel/ids";
import { type LeaseKey, nameOf, worktreeKey } from "../kernel/keys";
import type { Lease } from "../kernel/lease";
import type { Processes } from "../platform/platform";

/** What a writer lock is a lease on. */
export function writerKey(worktreeId: WorktreeId): LeaseKey {
  return orThrow(worktreeKey(worktreeId));
}

/** A writer lock as the record that programs know from before there were leases. */
export interface LockRecord {
  readonly lock_id: string;
  readonly worktree_id: string;
  /** `host:user:pid:start_time` */
  readonly holder_id: string;
  readonly created_at: string;
  readonly last_renewed_at: string;
  readonly lease_expires_at: string | null;
  readonly fencing_token: number;
}

export function lockRecord(lease: Lease, processes: Pick<Processes, "host" | "machineId">): LockRecord {
  const { machineId, user, pid, startTime } = lease.holder;
  const host = machineId === processes.machineId() ? processes.host() : machineId;
  return {
    lock_id: lease.leaseId,
    worktree_id: nameOf(lease.key),
    holder_id: [host, user, pid, startTime].join(":"),
    created_at: new Date(lease.acquiredAt.wallMs).toISOString(),
    last_renewed_at: new Date(lease.renewedAt.wallMs).toISOString(),
    lease_expires_at: lease.expiresAt === null ? null : new Date(lease.expiresAt.wallMs).toISOString(),
    fencing_token: lease.fencingToken,
  };
}

/** Those of the replaced leases that were somebody else's: taking these over is a steal. */
export function stolenFrom(lease: Lease, session: Session): Lease["stoleFrom"] {
  return lease.stoleFrom.filter(({ agentId }) => agentId !== session.actor.agentId);
}

/**
 * Runs `act` under the session's writer lock: the one that it holds, or one that is taken for as long. What was held
 * before stays held.
 */
export async function underWriterLock<T>(
  session: Session,
  act: (lease: Lease, grant: Grant & { readonly isNew: boolean }) => Promise<T>,
): Promise<T> {
  const key = writerKey(session.actor.worktreeId);
  // Bound to this process: should it die, it blocks nobody.
  const grant = await session.acquire([{ key, reach: "repository" }], { ttlSecs: 0, bind: "process" });
  const lease = grant.leases.find((one) => one.key === key)!;
  if (!grant.isNew) return act(lease, grant);
  try {
    return await act(lease, grant);
  } finally {
    // It lapses by itself; what went well, or wrong, is not changed by it.
    await session.release([{ key, leaseId: lease.leaseId }]).catch(() => {});
  }
}
