import type { Coordinator } from "../../coordinator/contract";
import { orThrow } from "../../errors/cotenant-error";
import { type Fact, type FactName, factId, parseFactName } from "../../kernel/facts";
import type { Ulid, WorktreeId } from "../../kernel/ids";
import type { ProcessIdentity } from "../../platform/platform";

/** What is remembered of a worktree that cotenant made: for whom, and for what. */
export interface WorktreeRecord {
  readonly root: string;
  readonly branch: string | null;
  readonly agentId: string;
  readonly issueId: string | null;
  readonly createdAt: string;
  /** How `worktree.setup` ended there; null where there was none to run. */
  readonly setup: "done" | "failed" | "pending" | null;
  /** The snapshot that it was restored from. */
  readonly snapshotId: string | null;
  /** `landing`: for the checks of the merge queue, not for anybody's work. `dispatch`: a worker's, one issue after the other. */
  readonly purpose?: "landing" | "dispatch";
}

const RECORD = "worktree";
const MAKING = "making";

export function recordName(worktreeId: WorktreeId): FactName {
  return orThrow(parseFactName(`${RECORD}:${worktreeId}`));
}

export function recordToFact(record: WorktreeRecord): Fact {
  return {
    root: record.root,
    branch: record.branch,
    agent_id: record.agentId,
    issue_id: record.issueId,
    created_at: record.createdAt,
    setup: record.setup,
    snapshot_id: record.snapshotId,
    ...(record.purpose === undefined ? {} : { purpose: record.purpose }),
  };
}

export async function worktreeRecords(
  coordinator: Pick<Coordinator, "facts">,
): Promise<ReadonlyMap<string, WorktreeRecord>> {
  const records = new Map<string, WorktreeRecord>();
  for (const [name, { value }] of await coordinator.facts({ kinds: [RECORD] })) {
    const text = (field: string) => (typeof value[field] === "string" ? (value[field] as string) : null);
    records.set(factId(name), {
      root: text("root") ?? "",
      branch: text("branch"),
      agentId: text("agent_id") ?? "",
      issueId: text("issue_id"),
      createdAt: text("created_at") ?? "",
      setup: text("setup") as WorktreeRecord["setup"],
      snapshotId: text("snapshot_id"),
      ...purposeOf(value),
    });
  }
  return records;
}

function purposeOf(value: Fact): Pick<WorktreeRecord, "purpose"> {
  const purpose = (["landing", "dispatch"] as const).find((one) => one === value["purpose"]);
  return purpose === undefined ? {} : { purpose };
}

/** A worktree that somebody is making, or was making when they died. */
export interface Making {
  readonly id: Ulid;
  /** Where it is to be, and where it is made. */
  readonly place: string;
  readonly made: string;
  /** The branch that is made with it, and the commit that it starts at; null where none is made. */
  readonly branch: string | null;
  readonly commit: string;
  readonly maker: ProcessIdentity;
  /** What will be remembered of it. */
  readonly record: Pick<WorktreeRecord, "agentId" | "issueId" | "snapshotId" | "purpose">;
}

export function makingName(id: Ulid): FactName {
  return orThrow(parseFactName(`${MAKING}:${id.toLowerCase()}`));
}

export function makingToFact({ place, made, branch, commit, maker, record }: Making): Fact {
  const { agentId, issueId, snapshotId } = record;
  const purpose = record.purpose === undefined ? {} : { purpose: record.purpose };
  const remembered = { agent_id: agentId, issue_id: issueId, snapshot_id: snapshotId, ...purpose };
  return { place, made, branch, commit, maker: { ...maker }, ...remembered };
}

export async function makings(coordinator: Pick<Coordinator, "facts">): Promise<Making[]> {
  const found: Making[] = [];
  for (const [name, { value }] of await coordinator.facts({ kinds: [MAKING] })) {
    const { place, made, commit, maker } = value;
    const text = (field: string) => (typeof value[field] === "string" ? (value[field] as string) : null);
    if (typeof place !== "string" || typeof made !== "string" || typeof commit !== "string") continue;
    if (typeof maker !== "object" || maker === null) continue;
    found.push({
      id: factId(name).toUpperCase() as Ulid,
      place,
      made,
      branch: text("branch"),
      commit,
      maker: maker as ProcessIdentity,
      record: {
        agentId: text("agent_id") ?? "",
        issueId: text("issue_id"),
        snapshotId: text("snapshot_id"),
        ...purposeOf(value),
      },
    });
  }
  return found;
}
