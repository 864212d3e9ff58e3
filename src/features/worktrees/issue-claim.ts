import type { Coordinator } from "../../coordinator/contract";
import type { Acquired, AcquireOptions, Session } from "../../coordinator/session";
import { CotenantError } from "../../errors/cotenant-error";
import type { Actor } from "../../kernel/commands";
import type { LeaseKey } from "../../kernel/keys";
import type { Lease } from "../../kernel/lease";

/** The caller's own claim, from whichever worktree; null where nobody has claimed it. Refuses somebody else's. */
export async function ownClaim(
  coordinator: Pick<Coordinator, "find">,
  actor: Pick<Actor, "agentId" | "sessionId">,
  key: LeaseKey,
): Promise<Lease | null> {
  const found = await coordinator.find([{ key, leaseId: null }]);
  const held = found.find(({ standing }) => standing === "valid")?.lease;
  if (held === undefined) return null;
  const { agentId, sessionId, worktreeId, expiresAt } = held;
  if (agentId === actor.agentId && sessionId === actor.sessionId) return held;
  const id = key.slice("issue:".length);
  const who = agentId === actor.agentId ? `${agentId} in session ${sessionId}` : agentId;
  throw new CotenantError("E_LOCK_CONFLICT", `issue ${id} is claimed by ${who} from ${worktreeId}`, {
    hint: `wait until it is given back or has run out; who has it: cotenant claim status --issue ${id}`,
    data: {
      holders: [
        {
          agent_id: agentId,
          expires_at: expiresAt === null ? null : new Date(expiresAt.wallMs).toISOString(),
        },
      ],
    },
  });
}

/**
 * The claim of a new worktree: what the caller holds elsewhere moves along, with a new token and without an instant in
 * which it is free; what nobody holds is claimed from there.
 */
export async function claimFor(
  there: Session,
  key: LeaseKey,
  own: Lease | null,
  options: AcquireOptions & { readonly secret: string | null },
): Promise<Acquired> {
  const { agentId, worktreeId, branch } = there.actor;
  if (own !== null && own.worktreeId !== worktreeId)
    await there.elsewhere(own).transfer(
      { key, leaseId: own.leaseId },
      {
        toAgent: agentId,
        toWorktree: worktreeId,
        toBranch: branch,
        reason: `moves to its new worktree ${worktreeId}`,
        secret: options.secret,
      },
    );
  // What was handed over becomes the caller's by asking for it.
  return there.acquire([{ key, reach: "repository" }], options);
}
