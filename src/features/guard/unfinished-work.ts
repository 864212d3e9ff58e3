import type { Fact, FactName } from "../../kernel/facts";
import type { AgentId, WorktreeId } from "../../kernel/ids";
import type { LeaseKey } from "../../kernel/keys";
import type { Digest } from "../../platform/platform";
import type { GuardedWorktree } from "./worktree";

/** Uncommitted work in a file that its author has let go of. */
export interface LeftWork {
  readonly key: LeaseKey;
  readonly worktreeId: WorktreeId;
  readonly agentId: AgentId;
  readonly why: string;
  readonly at: string;
}

export const LEFT = "left";

export function leftName(digest: Digest, worktreeId: WorktreeId, key: LeaseKey): FactName {
  return `${LEFT}:${digest.sha256(`${worktreeId}\n${key}`).slice(0, 32)}` as FactName;
}

export function leftFromFact(value: Fact): LeftWork {
  return {
    key: String(value["key"]) as LeaseKey,
    worktreeId: String(value["worktree_id"]) as WorktreeId,
    agentId: String(value["agent_id"]) as AgentId,
    why: String(value["why"]),
    at: String(value["at"]),
  };
}

const MOST = 200;

/** On record, for whoever gets the file next. */
export async function recordLeft(
  { session, world }: Pick<GuardedWorktree, "session" | "world">,
  left: readonly Omit<LeftWork, "at">[],
): Promise<void> {
  if (left.length === 0) return;
  const { digest } = world.platform;
  await session.write([], {
    about: `${left.length} uncommitted`,
    facts: [],
    body: async ({ now }) => {
      const at = new Date(now.wallMs).toISOString();
      const facts = new Map<FactName, Fact>();
      for (const { key, worktreeId, agentId, why } of left.slice(0, MOST))
        facts.set(leftName(digest, worktreeId, key), {
          key,
          worktree_id: worktreeId,
          agent_id: agentId,
          why,
          at,
        });
      const keys = left.slice(0, MOST).map(({ key }) => key);
      return { type: "guard.left", payload: { keys, why: left[0]!.why }, facts, answer: true };
    },
  });
}

/** Committed, or put back as it was. */
export async function forgetLeft(
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
      return {
        type: "guard.settled",
        payload: { files: known.length },
        facts: new Map(known.map((name) => [name, null])),
        answer: true,
      };
    },
  });
}
