import * as v from "valibot";
import type { Decoded } from "../../codec/codec";
import { anyObject, orNull, textOrEmpty, textOrNull } from "../../codec/fields";
import { codecOf } from "../../codec/record";
import type { Coordinator } from "../../coordinator/contract";
import { type Fact, type FactName, factId, factName } from "../../kernel/facts";
import { trusted, type Ulid, type WorktreeId } from "../../kernel/ids";
import type { ProcessIdentity } from "../../platform/platform";

/** Whose a worktree is, and what for. */
const OWNED = {
  agentId: textOrEmpty,
  issueId: textOrNull,
  /** The snapshot that it was restored from. */
  snapshotId: textOrNull,
  /** `landing`: for the checks of the merge queue, not for anybody's work. `dispatch`: a worker's, one issue after the other. */
  purpose: v.exactOptional(v.fallback(v.picklist(["landing", "dispatch"]), undefined as never)),
};

const RECORD = codecOf({
  root: textOrEmpty,
  branch: textOrNull,
  createdAt: textOrEmpty,
  /** How `worktree.setup` ended there; null where there was none to run. */
  setup: orNull(v.picklist(["done", "failed", "pending"])),
  ...OWNED,
});
/** What is remembered of a worktree that cotenant made: for whom, and for what. */
export type WorktreeRecord = Decoded<typeof RECORD>;

const MAKING = codecOf(
  {
    /** Where it is to be, and where it is made. */
    place: v.string(),
    made: v.string(),
    /** The branch that is made with it, and the commit that it starts at; null where none is made. */
    branch: textOrNull,
    commit: v.string(),
    maker: anyObject<ProcessIdentity>(),
    ...OWNED,
  },
  { opaque: new Set(["maker"]) },
);
/** A worktree that somebody is making, or was making when they died. */
export interface Making extends Omit<Decoded<typeof MAKING>, keyof Owned> {
  readonly id: Ulid;
  /** What will be remembered of it. */
  readonly record: Owned;
}
type Owned = Pick<WorktreeRecord, "agentId" | "issueId" | "snapshotId" | "purpose">;

export function recordName(worktreeId: WorktreeId): FactName {
  return factName("worktree", worktreeId);
}

export function recordToFact(record: WorktreeRecord): Fact {
  return RECORD.encode(record);
}

export async function worktreeRecords(
  coordinator: Pick<Coordinator, "facts">,
): Promise<ReadonlyMap<string, WorktreeRecord>> {
  const facts = await coordinator.facts({ kinds: ["worktree"] });
  return new Map(
    [...facts].flatMap(([name, { value }]) => {
      const record = RECORD.decode(value);
      return record === null ? [] : [[factId(name), record]];
    }),
  );
}

export function makingName(id: Ulid): FactName {
  return factName("making", id.toLowerCase());
}

export function makingToFact({ record, ...making }: Making): Fact {
  return MAKING.encode({ ...making, ...record });
}

export async function makings(coordinator: Pick<Coordinator, "facts">): Promise<Making[]> {
  const facts = await coordinator.facts({ kinds: ["making"] });
  return [...facts].flatMap(([name, { value }]) => {
    const read = MAKING.decode(value);
    if (read === null) return [];
    const { agentId, issueId, snapshotId, purpose, ...making } = read;
    const record = { agentId, issueId, snapshotId, ...(purpose === undefined ? {} : { purpose }) };
    return [{ id: trusted(factId(name).toUpperCase()), ...making, record }];
  });
}
