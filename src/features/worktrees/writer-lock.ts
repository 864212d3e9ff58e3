import type { Grant } from "../../coordinator/contract";
import type { Session } from "../../coordinator/session";
import { errorFrom, orThrow } from "../../errors/cotenant-error";
import type { WorktreeId } from "../../kernel/ids";
import { type LeaseKey, nameOf, worktreeKey } from "../../kernel/keys";
import type { Ended, Lease } from "../../kernel/lease";
import { gone } from "../../kernel/proof";
import { expired } from "../../kernel/words";
import type { Processes } from "../../platform/platform";

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

/** How a lock ended that was not given back, and was not that of a process alone. */
const LOST: readonly Ended["how"][] = ["expired", "stop_idle", "forced"];

/**
 * A holder that lost its lock writes nothing more: somebody else may have written since. It has to take the lock again, and
 * so to learn of it, before it goes on.
 */
async function refuseAfterLoss(session: Session, key: LeaseKey): Promise<void> {
  const mine = (await session.mine()).filter(({ lease }) => lease.key === key);
  if (mine.some(({ standing }) => standing === "valid")) return;
  const lapsed = mine.find(({ lease }) => lease.bind === "ttl")?.lease;
  const ended = (await session.endings([key]))
    .filter(({ how }) => LOST.includes(how))
    .sort((a, b) => b.fencingToken - a.fencingToken)[0];
  const last = lapsed ?? ended;
  if (last === undefined) return;
  const endings = new Map(ended === undefined ? [] : [[ended.leaseId, ended] as const]);
  const refusal = lapsed === undefined ? gone({ endings }, last) : expired(key, lapsed.leaseId);
  throw errorFrom({
    ...refusal,
    hint: "look at what has changed since, then take it again: cotenant worktree lock",
  });
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
  await refuseAfterLoss(session, key);
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
