import type { Coordinator } from "../coordinator/contract";
import type { Session } from "../coordinator/session";
import type { Fact, FactName } from "../kernel/facts";
import type { AgentId, LeaseId, SessionId, WorktreeId } from "../kernel/ids";
import type { LeaseKey } from "../kernel/keys";
import type { Digest } from "../platform/platform";

/** A file that changed under somebody else's lease while a shell command ran. */
export interface GuardViolation {
  readonly path: string;
  readonly key: LeaseKey;
  readonly worktreeId: WorktreeId;
  /** Whose command it was. */
  readonly agentId: AgentId;
  readonly sessionId: SessionId;
  readonly owner: AgentId;
  readonly ownerSession: SessionId;
  readonly leaseId: LeaseId;
  readonly at: string;
  /** The beginning of the command. */
  readonly command: string;
}

export const GUARD_VIOLATION = "guard-violation";

export function violationFactName(
  digest: Digest,
  { worktreeId, key, agentId, leaseId }: GuardViolation,
): FactName {
  const id = digest.sha256([worktreeId, key, agentId, leaseId].join("\n")).slice(0, 32);
  return `${GUARD_VIOLATION}:${id}` as FactName;
}

export async function recordViolations(
  session: Session,
  digest: Digest,
  violations: readonly Omit<GuardViolation, "at">[],
): Promise<void> {
  const first = violations[0];
  if (first === undefined) return;
  await session.write([], {
    about: first.path,
    facts: [],
    body: async ({ now }) => {
      const at = new Date(now.wallMs).toISOString();
      const facts = new Map<FactName, Fact>(
        violations.map((violation) => {
          const whole = { ...violation, at };
          return [violationFactName(digest, whole), toFact(whole)];
        }),
      );
      return {
        type: "guard.violated",
        payload: {
          command: first.command,
          files: violations.map(({ path, agentId, owner, leaseId }) => ({
            path,
            agent_id: agentId,
            owner,
            lease_id: leaseId,
          })),
        },
        facts,
        answer: true,
      };
    },
  });
}

export async function guardViolations(coordinator: Coordinator): Promise<[FactName, GuardViolation][]> {
  const facts = await coordinator.facts({ kinds: [GUARD_VIOLATION] });
  return [...facts].map(([name, { value }]) => [name, violationFromFact(value)]);
}

function toFact(violation: GuardViolation): Fact {
  const { path, key, worktreeId, agentId, sessionId, owner, ownerSession, leaseId, at, command } = violation;
  return {
    path,
    key,
    worktree_id: worktreeId,
    agent_id: agentId,
    session_id: sessionId,
    owner,
    owner_session_id: ownerSession,
    lease_id: leaseId,
    at,
    command,
  };
}

export function violationFromFact(fact: Fact): GuardViolation {
  const text = (name: string) => String(fact[name] ?? "");
  return {
    path: text("path"),
    key: text("key") as LeaseKey,
    worktreeId: text("worktree_id") as WorktreeId,
    agentId: text("agent_id") as AgentId,
    sessionId: text("session_id") as SessionId,
    owner: text("owner") as AgentId,
    ownerSession: text("owner_session_id") as SessionId,
    leaseId: text("lease_id") as LeaseId,
    at: text("at"),
    command: text("command"),
  };
}
