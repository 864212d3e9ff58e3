import type { Session } from "../coordinator/session";
import type { Fact, FactName } from "../kernel/facts";
import type { Objection } from "./commit-rules";

/** A commit that the hooks would have refused, and that was made all the same. */
export interface Violation {
  readonly commit: string;
  readonly agentId: string;
  readonly at: string;
  readonly objections: readonly {
    readonly path: string;
    readonly message: string;
    readonly owner: string | null;
  }[];
}

export const VIOLATION_KIND = "violation";
const MOST_KEPT = 20;

export function violationName(commit: string): FactName {
  return `${VIOLATION_KIND}:${commit}` as FactName;
}

/** On record, for `status`, `stats` and the next push. */
export async function recordViolation(
  session: Session,
  commit: string,
  objections: readonly Objection[],
): Promise<void> {
  const kept = objections
    .slice(0, MOST_KEPT)
    .map(({ path, message, owner }) => ({ path: path.slice(0, 300), message: message.slice(0, 300), owner }));
  await session.write([], {
    about: `commit ${commit}`,
    facts: [violationName(commit)],
    body: async ({ facts, now }) => {
      if (facts.has(violationName(commit))) return null;
      const at = new Date(now.wallMs).toISOString();
      const fact: Fact = { commit, agent_id: session.actor.agentId, at, objections: kept };
      return {
        type: "policy.violated",
        payload: {
          commit,
          paths: kept.map(({ path }) => path),
          owners: [...new Set(kept.map(({ owner }) => owner))],
        },
        facts: new Map([[violationName(commit), fact]]),
        answer: true,
      };
    },
  });
}

export function violationFrom(fact: Fact): Violation | null {
  const { commit, agent_id: agentId, at, objections } = fact;
  if (typeof commit !== "string" || !Array.isArray(objections)) return null;
  return { commit, agentId: String(agentId ?? ""), at: String(at ?? ""), objections };
}
