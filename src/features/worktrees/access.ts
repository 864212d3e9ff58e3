import type { Coordinator } from "../../coordinator/contract";
import type { Session } from "../../coordinator/session";
import { CotenantError, orThrow } from "../../errors/cotenant-error";
import { type FactName, factName } from "../../kernel/facts";
import type { WorktreeId } from "../../kernel/ids";
import { writerKey } from "./writer-lock";

/** `exclusive`: one writer at a time, by lock. `shared`: no lock, and nobody promises anything. */
export const ACCESS_MODES = ["exclusive", "shared"] as const;
export type Access = (typeof ACCESS_MODES)[number];

/** For people, wherever a worktree is shown. */
export function accessText(access: Access): string {
  return access === "shared" ? "shared (high risk: no lock keeps its writers apart)" : access;
}

/** For programs, likewise. */
export function accessJson(access: Access): { readonly access: Access; readonly high_risk: boolean } {
  return { access, high_risk: access === "shared" };
}

export function accessFact(worktreeId: WorktreeId): FactName {
  return factName("access", worktreeId);
}

export async function accessOf(
  coordinator: Pick<Coordinator, "facts">,
  worktreeId: WorktreeId,
): Promise<Access> {
  const name = accessFact(worktreeId);
  return accessIn(await coordinator.facts({ names: [name] }), worktreeId);
}

export function accessIn(
  facts: ReadonlyMap<FactName, { readonly value: Readonly<Record<string, unknown>> }>,
  worktreeId: WorktreeId,
): Access {
  return facts.get(accessFact(worktreeId))?.value["mode"] === "shared" ? "shared" : "exclusive";
}

/**
 * Changes it under the writer lock, so that it never changes under somebody's hands. Answers what it was before. A shared
 * worktree has no lock: there the change needs none.
 */
export async function setAccess(session: Session, mode: Access, setAt: string): Promise<Access> {
  const { worktreeId, agentId } = session.actor;
  const name = accessFact(worktreeId);
  const before = await accessOf(session.coordinator, worktreeId);
  if (before === mode) return before;
  const key = writerKey(worktreeId);
  if (before === "exclusive")
    await session.acquire([{ key, reach: "repository" }], { ttlSecs: 0, bind: "process" });
  try {
    const refs = before === "exclusive" ? [{ key, leaseId: null }] : [];
    await session.write(refs, {
      about: `access to ${worktreeId}`,
      facts: [name],
      body: async ({ refusal }) => {
        if (refusal !== null) throw orThrow(refusal);
        const value = mode === "exclusive" ? null : { mode, set_by: agentId, set_at: setAt };
        return {
          type: "worktree.access",
          payload: { worktree_id: worktreeId, access: mode, before },
          facts: new Map([[name, value]]),
          answer: mode,
        };
      },
    });
  } finally {
    // Also one that was held before: in a shared worktree there is nothing to hold.
    if (before === "exclusive") await session.release([{ key, leaseId: null }]);
  }
  return before;
}

export function refuseShared(access: Access, worktreeId: WorktreeId, what: string): void {
  if (access === "exclusive") return;
  throw new CotenantError("E_POLICY", `${worktreeId} is shared: ${what}`, {
    hint: "make it exclusive first: cotenant worktree access exclusive",
    data: { worktree_id: worktreeId, access },
  });
}
