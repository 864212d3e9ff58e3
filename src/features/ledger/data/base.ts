import type { Coordinator } from "../../../coordinator/contract";
import { type Fact, type FactName, factName } from "../../../kernel/facts";
import type { Ulid, WorktreeId } from "../../../kernel/ids";

/**
 * What a worktree and the ledger last had in common: a commit of the branch, and an older one for issues that could not be
 * brought up to it.
 */
export interface SyncBase {
  readonly commit: string;
  readonly kept: Readonly<Record<string, string>>;
}

/** So many fit into a fact; with more of them the common commit stays where it is. */
const MOST_KEPT = 150;
const OID = /^[0-9a-f]{40,64}$/;

export function baseName(worktreeId: WorktreeId): FactName {
  return factName("ledger-base", worktreeId.replace(":", "-"));
}

export async function readBase(
  coordinator: Pick<Coordinator, "facts">,
  worktreeId: WorktreeId,
): Promise<SyncBase | null> {
  const name = baseName(worktreeId);
  const fact = (await coordinator.facts({ names: [name] })).get(name)?.value;
  const commit = fact?.["commit"];
  if (typeof commit !== "string" || !OID.test(commit)) return null;
  const entries = Object.entries((fact?.["kept"] ?? {}) as Record<string, unknown>);
  const kept = entries.filter(
    (entry): entry is [string, string] => typeof entry[1] === "string" && OID.test(entry[1]),
  );
  return { commit, kept: Object.fromEntries(kept) };
}

export function baseFact({ commit, kept }: SyncBase): Fact {
  return { commit, ...(Object.keys(kept).length === 0 ? {} : { kept }) };
}

/** After a sync that has brought everything but `stuck` to `tip`. */
export function nextBase(before: SyncBase | null, tip: string, stuck: readonly Ulid[]): SyncBase | null {
  if (stuck.length > MOST_KEPT) return before;
  const kept: Record<string, string> = {};
  for (const id of stuck) {
    const old = before?.kept[id] ?? before?.commit;
    if (old !== undefined) kept[id] = old;
  }
  return { commit: tip, kept };
}
