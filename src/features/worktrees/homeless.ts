import type { LeaseStatus } from "../../coordinator/contract";
import type { Session } from "../../coordinator/session";
import type { Repository } from "../../identity/repository";
import { readWorktreeFile, worktreeFilePath } from "../../identity/worktree-file";
import { listWorktrees, type WorktreeEntry } from "../../identity/worktree-list";
import type { WorktreeId } from "../../kernel/ids";
import { kindOf } from "../../kernel/keys";
import { effectiveReach, type Lease } from "../../kernel/lease";
import type { Git } from "../../platform/git";
import type { Platform } from "../../platform/platform";
import { writerKey } from "./writer-lock";

/** A lease of a worktree that is not there any more. */
export interface Homeless {
  readonly status: LeaseStatus;
  /** Where it was, while Git has it on record; null once it has not. */
  readonly root: string | null;
}

/** Those among valid leases. None where the id of a worktree cannot be told: it may be that one's. */
export async function homelessAmong(
  { platform, git, repository }: { platform: Platform; git: Git; repository: Repository },
  valid: readonly LeaseStatus[],
): Promise<Homeless[]> {
  if (valid.length === 0) return [];
  const there = new Set<WorktreeId>();
  const gone = new Map<WorktreeId, string>();
  for (const entry of await listWorktrees(platform, git, repository)) {
    if (!entry.exists) {
      const id = await storedId(platform, entry);
      if (id !== null) gone.set(id, entry.root);
    } else if (entry.worktreeId === null) return [];
    else there.add(entry.worktreeId);
  }
  return valid
    .filter(({ lease }) => !there.has(lease.worktreeId))
    .map((status) => ({ status, root: gone.get(status.lease.worktreeId) ?? null }));
}

/** The id that a worktree had which is gone. */
export async function storedId(
  { files }: Pick<Platform, "files">,
  { gitDir }: Pick<WorktreeEntry, "gitDir">,
): Promise<WorktreeId | null> {
  try {
    const file = await readWorktreeFile(files, worktreeFilePath(gitDir));
    return file.kind === "whole" ? file.identity.worktreeId : null;
  } catch {
    return null;
  }
}

/** What ended with a worktree, and what others still hold from it. */
export interface Ending {
  readonly ended: readonly Lease[];
  readonly stillHeld: readonly LeaseStatus[];
}

/**
 * Ends the leases of a worktree that is gone (ADR 0062): the caller's own, and, whoever holds them, those that are about
 * the worktree alone, for nothing is left that they cover. What others hold of the whole repository is theirs to end.
 */
export async function endHomeless(session: Session, worktreeId: WorktreeId): Promise<Ending> {
  const { coordinator, actor } = session;
  const held = (await coordinator.list()).filter(
    ({ lease }) => lease.worktreeId === worktreeId || lease.key === writerKey(worktreeId),
  );
  const isOwn = ({ lease }: LeaseStatus) =>
    lease.agentId === actor.agentId && lease.sessionId === actor.sessionId;
  const own = held.filter(isOwn);
  const bound = held
    .filter((status) => !isOwn(status) && isOfPlaceAlone(status.lease))
    .map(({ lease }) => lease);
  const ended: Lease[] = [];
  for (const { lease } of own) {
    const there = session.elsewhere(lease);
    const ref = { key: lease.key, leaseId: lease.leaseId };
    // One whose secret is lost ends like those of others, or by its time.
    if ((await there.release([ref]).catch(() => null)) !== null) ended.push(lease);
    else if (isOfPlaceAlone(lease)) bound.push(lease);
  }
  ended.push(...(await endBound(session, bound)));
  return { ended, stillHeld: held.filter(({ lease }) => !ended.includes(lease)) };
}

/** Of worktrees that Git does not know any more: nobody can name these to be removed. */
export async function endForgotten(
  session: Session,
  homeless: readonly Homeless[],
): Promise<readonly Lease[]> {
  const bound = homeless.filter(({ root, status }) => root === null && isOfPlaceAlone(status.lease));
  return endBound(
    session,
    bound.map(({ status }) => status.lease),
  );
}

async function endBound(session: Session, leases: readonly Lease[]): Promise<readonly Lease[]> {
  if (leases.length === 0) return [];
  await session.coordinator.evict({
    actor: session.actor,
    leases: leases.map(({ key, leaseId }) => ({ key, leaseId })),
    reason: "its worktree is gone",
    requestId: null,
    isOverruled: true,
  });
  return leases;
}

/** About the worktree and nothing beyond it. */
export function isOfPlaceAlone({ key, reach }: Lease): boolean {
  return kindOf(key) === "worktree" || effectiveReach(key, reach) === "worktree";
}
