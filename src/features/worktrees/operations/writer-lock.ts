import type { Change } from "../../../coordinator/contract";
import type { Workspace } from "../../../coordinator/workspace";
import { byKey, type LeaseRef } from "../../../kernel/commands";
import type { WorktreeId } from "../../../kernel/ids";
import type { Lease } from "../../../kernel/lease";
import {
  checkedTerms,
  type LeaseTerms,
  type ReleaseRequest,
  type RenewRequest,
  releaseLeases,
  renewLeases,
  waitOf,
} from "../../locks/operations";
import { precaution } from "../../snapshots/precaution";
import { accessOf, refuseShared } from "../access";
import { openWorktree } from "../meant";
import { stolenFrom, writerKey } from "../writer-lock";

interface WorktreeNamed {
  /** Default: the caller's. */
  readonly worktree?: string | undefined;
}

export interface WriterLock {
  readonly worktreeId: WorktreeId;
  readonly lease: Lease;
  readonly changed: boolean;
  readonly replayed: boolean;
}

export interface WriterLocked extends WriterLock {
  /** What was there when it was taken over; null where it was not, or could not be kept. */
  readonly snapshotId: string | null;
  /** What proves the lock, for callers that keep it themselves. */
  readonly secret: string | null;
}

/** Makes the caller a worktree's only writer. One that has run out is taken over, and what is there kept as a snapshot. */
export async function lock(workspace: Workspace, request: LeaseTerms & WorktreeNamed): Promise<WriterLocked> {
  const there = await openWorktree(workspace, request.worktree);
  const { worktreeId } = (await there.worktree("read")).identity;
  refuseShared(await accessOf(there.coordinator, worktreeId), worktreeId, "it has no writer lock");
  const key = writerKey(worktreeId);
  const terms = await checkedTerms(there, request, [key], "lock");
  const session = await there.session("write");
  const grant = await session.acquire([{ key, reach: "repository" }], { ...terms, wait: waitOf(request) });
  await session.forgetLosses([key]);
  const lease = grant.leases.find((one) => one.key === key)!;
  const { changed, replayed, secret } = grant;
  const isStolen = changed && !replayed && stolenFrom(lease, session).length > 0;
  const kept = isStolen ? await precaution(there, "steal") : null;
  if (kept?.failure != null)
    there.warnings.push(`what was there before could not be kept: ${kept.failure.message}`);
  const snapshotId = kept?.snapshotId ?? null;
  return { worktreeId, lease, changed, replayed, snapshotId, secret };
}

export async function renew(
  workspace: Workspace,
  request: RenewRequest & WorktreeNamed,
): Promise<WriterLock> {
  return changeLock(workspace, request, (there, refs) => renewLeases(there, refs, request));
}

/** Gives a writer lock back. It is free at once. */
export async function unlock(
  workspace: Workspace,
  request: ReleaseRequest & WorktreeNamed,
): Promise<WriterLock> {
  return changeLock(workspace, request, (there, refs) => releaseLeases(there, refs, request));
}

async function changeLock(
  workspace: Workspace,
  { worktree }: WorktreeNamed,
  change: (there: Workspace, refs: readonly LeaseRef[]) => Promise<Change>,
): Promise<WriterLock> {
  const there = await openWorktree(workspace, worktree);
  const { worktreeId } = (await there.worktree("read")).identity;
  const { leases, changed, replayed } = await change(there, [byKey(writerKey(worktreeId))]);
  return { worktreeId, lease: leases[0]!, changed, replayed };
}
