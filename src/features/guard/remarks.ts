import type { Acquired } from "../../coordinator/session";
import type { LeaseKey } from "../../kernel/keys";
import { dirtyKeys } from "./git-state";
import { forgetLeft, type LeftWork, leftFromFact, leftName } from "./unfinished-work";
import type { GuardedWorktree } from "./worktree";
import type { WriteTarget } from "./write-target";

/** What whoever gets a file should know of it: whose work is in it, and who changes it elsewhere. */
export async function remarks(
  place: GuardedWorktree,
  targets: readonly WriteTarget[],
  grant: Pick<Acquired, "ended" | "fresh">,
): Promise<string | null> {
  const lines = [...(await others(place, targets, grant)), ...(await elsewhere(place, targets))];
  return lines.length === 0 ? null : lines.slice(0, MOST_LINES).join("\n");
}

const MOST_LINES = 10;

async function others(
  place: GuardedWorktree,
  targets: readonly WriteTarget[],
  { ended }: Pick<Acquired, "ended">,
): Promise<string[]> {
  const { world, coordinator, worktreeId, who } = place;
  const names = targets.map(({ key }) => leftName(world.platform.digest, worktreeId, key));
  const facts = await coordinator.facts({ names });
  const whose = new Map<LeaseKey, Pick<LeftWork, "agentId" | "why">>();
  for (const { value } of facts.values()) {
    const left = leftFromFact(value);
    whose.set(left.key, left);
  }
  for (const { key, agentId, how } of ended)
    if (agentId !== who.agentId && targets.some((target) => target.key === key))
      whose.set(key, { agentId, why: WHY[how] ?? how });
  if (whose.size === 0) return [];
  const dirty = await dirtyKeys(place, [...whose.keys()]);
  const settled = names.filter(
    (name) => facts.has(name) && !dirty.has(leftFromFact(facts.get(name)!.value).key),
  );
  if (settled.length > 0) await forgetLeft(place, settled, "clean again");
  return targets
    .filter(({ key }) => dirty.has(key) && whose.has(key))
    .map(({ key, path }) => {
      const { agentId, why } = whose.get(key)!;
      return `cotenant: ${path} has uncommitted changes of ${agentId} (${why}). They are not yours: keep them, or ask.`;
    });
}

const WHY: Readonly<Record<string, string>> = {
  dead: "its process died",
  expired: "its lease expired",
  stop_idle: "its session had stopped",
  forced: "it was made to give way",
};

/** In another worktree the same path is another file, but the changes will meet. */
async function elsewhere(place: GuardedWorktree, targets: readonly WriteTarget[]): Promise<string[]> {
  const { coordinator, settings, worktreeId } = place;
  if (settings.acrossWorktrees !== "warn") return [];
  const found = await coordinator.overlapping(
    targets.map(({ key }) => ({ key, reach: "repository" as const, worktreeId })),
  );
  return targets.flatMap(({ key, path }) => {
    const other = found.find(
      ({ lease, standing }) => standing === "valid" && lease.key === key && lease.worktreeId !== worktreeId,
    );
    if (other === undefined) return [];
    const { agentId, branch, worktreeId: where } = other.lease;
    const on = branch === null ? "" : ` on ${branch}`;
    return [
      `cotenant: ${agentId} is changing ${path} too, in another worktree (${where}${on}). Expect a merge.`,
    ];
  });
}
