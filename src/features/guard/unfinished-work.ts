import type { Acquired } from "../../coordinator/session";
import { type Fact, type FactName, factName } from "../../kernel/facts";
import { type AgentId, trusted, type WorktreeId } from "../../kernel/ids";
import type { LeaseKey } from "../../kernel/keys";
import type { Digest } from "../../platform/platform";
import { dirtyKeys } from "./git-state";
import type { GuardedWorktree } from "./worktree";
import type { WriteTarget } from "./write-target";

/** Uncommitted work in a file that its author has let go of. */
interface UnfinishedWork {
  readonly key: LeaseKey;
  readonly worktreeId: WorktreeId;
  readonly agentId: AgentId;
  readonly why: string;
  readonly at: string;
}

export const UNFINISHED = "left";

export function unfinishedName(digest: Digest, worktreeId: WorktreeId, key: LeaseKey): FactName {
  return factName(UNFINISHED, digest.sha256(`${worktreeId}\n${key}`).slice(0, 32));
}

function unfinishedIn(value: Fact): UnfinishedWork {
  return {
    key: trusted(String(value["key"])),
    worktreeId: trusted(String(value["worktree_id"])),
    agentId: trusted(String(value["agent_id"])),
    why: String(value["why"]),
    at: String(value["at"]),
  };
}

const MOST_RECORDED = 200;

/** On record, for whoever gets the file next. */
export async function recordUnfinished(
  { session, world }: Pick<GuardedWorktree, "session" | "world">,
  all: readonly Omit<UnfinishedWork, "at">[],
): Promise<void> {
  const [first] = all;
  if (first === undefined) return;
  const { digest } = world.platform;
  const works = all.slice(0, MOST_RECORDED);
  await session.write([], {
    about: `${all.length} uncommitted`,
    facts: [],
    body: async ({ now }) => {
      const at = new Date(now.wallMs).toISOString();
      const facts = works.map(({ key, worktreeId, agentId, why }): [FactName, Fact] => [
        unfinishedName(digest, worktreeId, key),
        { key, worktree_id: worktreeId, agent_id: agentId, why, at },
      ]);
      const payload = { keys: works.map(({ key }) => key), why: first.why };
      return { type: "guard.left", payload, facts: new Map(facts), answer: true };
    },
  });
}

/** Nobody has to be told of them any more. */
export async function forgetFacts(
  { session }: Pick<GuardedWorktree, "session">,
  names: readonly FactName[],
  about: string,
): Promise<void> {
  await session.write([], {
    about,
    facts: [...names],
    body: async ({ facts }) => {
      const known = names.filter((name) => facts.has(name));
      if (known.length === 0) return null;
      const gone = new Map(known.map((name) => [name, null]));
      return { type: "guard.settled", payload: { files: known.length }, facts: gone, answer: true };
    },
  });
}

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
  const names = targets.map(({ key }) => unfinishedName(world.platform.digest, worktreeId, key));
  const facts = await coordinator.facts({ names });
  const whose = new Map<LeaseKey, Pick<UnfinishedWork, "agentId" | "why">>();
  for (const { value } of facts.values()) {
    const work = unfinishedIn(value);
    whose.set(work.key, work);
  }
  for (const { key, agentId, how } of ended)
    if (agentId !== who.agentId && targets.some((target) => target.key === key))
      whose.set(key, { agentId, why: WHY[how] ?? how });
  if (whose.size === 0) return [];
  const dirty = await dirtyKeys(place, [...whose.keys()]);
  const settled = names.filter(
    (name) => facts.has(name) && !dirty.has(unfinishedIn(facts.get(name)!.value).key),
  );
  if (settled.length > 0) await forgetFacts(place, settled, "clean again");
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
