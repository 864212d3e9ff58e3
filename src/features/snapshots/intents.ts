import type { Coordinator } from "../../coordinator/contract";
import { type Fact, type FactName, factId, factName } from "../../kernel/facts";
import type { ProcessIdentity } from "../../platform/platform";

/** A snapshot that somebody is taking, or was taking when they died. */
export interface SnapshotIntent {
  readonly snapshotId: string;
  readonly worktreeId: string;
  readonly agentId: string;
  readonly startedAt: string;
  readonly requestId: string | null;
  readonly maker: ProcessIdentity;
}

const INTENT = "snapshot";
const LATEST = "latest-snapshot";

export function intentName(snapshotId: string): FactName {
  return factName(INTENT, snapshotId.toLowerCase());
}

/** What a worktree's next snapshot comes after. */
export function latestName(worktreeId: string): FactName {
  return factName(LATEST, worktreeId);
}

export function intentToFact(intent: SnapshotIntent): Fact {
  const { worktreeId, agentId, startedAt, requestId, maker } = intent;
  return {
    worktree_id: worktreeId,
    agent_id: agentId,
    started_at: startedAt,
    request_id: requestId,
    maker: { ...maker },
  };
}

export async function openIntents(coordinator: Pick<Coordinator, "facts">): Promise<SnapshotIntent[]> {
  const found: SnapshotIntent[] = [];
  for (const [name, { value }] of await coordinator.facts({ kinds: [INTENT] })) {
    const { maker, request_id: requestId } = value;
    if (typeof maker !== "object" || maker === null) continue;
    found.push({
      snapshotId: factId(name).toUpperCase(),
      worktreeId: String(value["worktree_id"]),
      agentId: String(value["agent_id"]),
      startedAt: String(value["started_at"]),
      requestId: typeof requestId === "string" ? requestId : null,
      maker: maker as ProcessIdentity,
    });
  }
  return found;
}
