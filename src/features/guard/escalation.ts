import { recordEscalated } from "../../coordinator/escalation";
import type { Workspace } from "../../coordinator/workspace";
import { type Contender, contendersIn, type Escalated, escalatedAmong } from "../../kernel/escalation";
import type { Contention } from "./contention";
import { seenContentions } from "./overview";
import type { GuardedWorktree } from "./worktree";

/** What is held and contended for too long, whoever waits for it: in the queue, or denied a file and still without it. */
export async function escalated(workspace: Workspace): Promise<Escalated[]> {
  const { coordinator } = workspace;
  const { escalateAfterSecs } = coordinator.policy;
  if (escalateAfterSecs === 0) return [];
  const leases = (await coordinator.list()).map(({ lease }) => lease);
  const denied = (await seenContentions(workspace))
    .filter(({ isFree, isOver }) => !isFree && !isOver)
    .map(({ contention }) => asContender(contention));
  const contenders = [...contendersIn(await coordinator.waiters(), leases), ...denied];
  return escalatedAmong(leases, contenders, coordinator.store.now(), escalateAfterSecs);
}

/** For an agent that is denied once more: who has kept it waiting for too long goes on record. Never why it is answered otherwise. */
export async function noteEscalated(
  { coordinator, session }: GuardedWorktree,
  contentions: readonly Contention[],
): Promise<void> {
  const { escalateAfterSecs } = coordinator.policy;
  const leaseIds = contentions.flatMap(({ owner }) => owner.leaseId ?? []);
  if (escalateAfterSecs === 0 || leaseIds.length === 0) return;
  try {
    const found = await coordinator.find(
      contentions.map(({ owner }) => ({ key: owner.heldKey, leaseId: owner.leaseId })),
    );
    const valid = found.filter(({ standing }) => standing === "valid").map(({ lease }) => lease);
    const now = coordinator.store.now();
    const due = escalatedAmong(valid, contentions.map(asContender), now, escalateAfterSecs);
    await recordEscalated(coordinator, session.actor, due);
  } catch {
    // The check itself is what counts.
  }
}

function asContender({ agentId, deniedAt, owner }: Contention): Contender {
  return { agentId, since: deniedAt, leaseIds: owner.leaseId === null ? [] : [owner.leaseId] };
}
