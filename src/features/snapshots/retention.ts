import type { Descriptor } from "./descriptor";
import { intentName } from "./intents";
import { dropRef } from "./snapshot-commit";
import type { SnapshotContext } from "./snapshot-context";

export interface Rules {
  /** How many automatic ones of each worktree stay. */
  readonly keepAutomatic: number;
  /** Older ones go, whoever took them; null: age does not matter. */
  readonly olderThanMs: number | null;
  /** Only of this worktree; null: of all. */
  readonly worktreeId: string | null;
  /** Also those that somebody took. */
  readonly withManual: boolean;
  /** Exactly these, whatever else is said. */
  readonly named: readonly string[];
}

/** Why one is to go. */
export interface Doomed {
  readonly descriptor: Descriptor;
  readonly why: string;
}

/**
 * Which snapshots are to go. Pure. Tagged ones stay, and so does the last of each worktree: it may be all that is left of
 * it. Both go only by name.
 */
export function planRetention(all: readonly Descriptor[], rules: Rules, nowMs: number): Doomed[] {
  if (rules.named.length > 0)
    return all
      .filter(({ snapshot_id: id }) => rules.named.includes(id))
      .map((descriptor) => ({ descriptor, why: "named" }));
  const last = new Map(all.map((descriptor) => [descriptor.worktree_id, descriptor.snapshot_id]));
  const isSafe = ({ tags, worktree_id: wt, snapshot_id: id, automatic }: Descriptor) =>
    tags.length > 0 || last.get(wt) === id || automatic === "remove";
  const own = all.filter(({ worktree_id: wt }) => rules.worktreeId === null || wt === rules.worktreeId);
  const doomed = new Map<string, Doomed>();
  const seen = new Map<string, number>();
  for (const descriptor of [...own].reverse()) {
    const { automatic, worktree_id: wt, snapshot_id: id, created_at: at } = descriptor;
    const isOld = rules.olderThanMs !== null && Date.parse(at) < nowMs - rules.olderThanMs;
    if (automatic === null && !(rules.withManual && isOld)) continue;
    if (automatic !== null) seen.set(wt, (seen.get(wt) ?? 0) + 1);
    if (isSafe(descriptor)) continue;
    if (isOld) doomed.set(id, { descriptor, why: "old" });
    else if (automatic !== null && rules.olderThanMs === null && seen.get(wt)! > rules.keepAutomatic)
      doomed.set(id, { descriptor, why: "automatic, and there are newer ones" });
  }
  return [...doomed.values()].reverse();
}

/** A plan's name: the same plan has the same, and another plan another. */
export function planId(sha256: (text: string) => string, doomed: readonly Doomed[]): string {
  return sha256(doomed.map(({ descriptor }) => descriptor.snapshot_id).join("\n")).slice(0, 12);
}

/** First nobody sees it, then the log says so, then its ref and its descriptor go: killed anywhere, `doctor` finds the rest. */
export async function removeSnapshot(
  { session, machine, place, descriptors }: SnapshotContext,
  { snapshot_id: id, worktree_id: worktreeId }: Descriptor,
  why: string,
): Promise<void> {
  await session.write([], {
    about: `snapshot ${id}`,
    facts: [],
    body: async () => {
      await descriptors.takeDown(id);
      return {
        type: "snapshot.removed",
        payload: { snapshot_id: id, worktree_id: worktreeId, why },
        facts: new Map([[intentName(id), null]]),
        answer: null,
      };
    },
  });
  await dropRef(machine, place, id);
  await descriptors.clear(id);
}

/** What the setting asks for, of the present worktree. */
export async function pruneAutomatic(context: SnapshotContext): Promise<number> {
  const { workspace, session, descriptors, machine } = context;
  const rules: Rules = {
    keepAutomatic: workspace.config.values["snapshot.keep_automatic"],
    olderThanMs: null,
    worktreeId: session.actor.worktreeId,
    withManual: false,
    named: [],
  };
  const doomed = planRetention(await descriptors.all(), rules, machine.platform.clock.wallMs());
  for (const { descriptor, why } of doomed) await removeSnapshot(context, descriptor, why);
  return doomed.length;
}
