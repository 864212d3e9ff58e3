import { refuseRuled } from "../../coordinator/path-rules";
import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { errorFrom, orThrow } from "../../errors/cotenant-error";
import { currentBranch } from "../../identity/branch";
import type { LeaseId } from "../../kernel/ids";
import { fileKey, type LeaseKey, scopeKey } from "../../kernel/keys";
import type { Refusal } from "../../kernel/refusal";
import { globalRefusal } from "../hooks/global-operations";

/** Long enough for any edit of ours, short enough that a killed one is no burden. */
const TTL_SECS = 60;
/** Two commands of one session share its lease, and the first to end gives it back. */
const MOST_TRIES = 20;

export type Scope = "config" | "gates" | "types";

const FILES: Readonly<Record<Scope, string>> = {
  config: ".cotenant/config.toml",
  types: ".cotenant/config.toml",
  gates: ".cotenant/gates/registry.json",
};

/** What a change comes to, worked out inside the store's critical section. */
export interface GlobalChange<T> {
  readonly answer: T;
  /** Writes the new content beside the old one; what it answers puts it in place. Null where there is nothing to change. */
  readonly stage: (() => Promise<() => Promise<void>>) | null;
  /** For the log. */
  readonly payload: Readonly<Record<string, unknown>>;
}

/**
 * Changes what concerns everybody: on a branch that may, on top of the main branch's history, and under the lease of its scope, which is
 * proved, logged and used in one critical section, and given back unless it was held before.
 */
export async function changeForAll<T>(
  workspace: Workspace,
  scope: Scope,
  plan: () => Promise<GlobalChange<T>>,
): Promise<T> {
  await requireAllowed(workspace, scope);
  await refuseRuled(workspace, [orThrow(fileKey(FILES[scope]))]);
  // The first to write here makes a store: not for what is refused anyway.
  if (!(await workspace.hasStore())) await plan();
  const session = await workspace.session("write");
  const key = orThrow(scopeKey(scope));
  const mine = await session.mine();
  const before = mine.find(({ lease, standing }) => lease.key === key && standing === "valid") ?? null;
  const ttlSecs = await workspace.withinPolicy(TTL_SECS);
  let refusal: Refusal | null = null;
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const done = await once(session, key, ttlSecs, plan, before?.lease.leaseId ?? null);
    if ("answer" in done) return done.answer;
    refusal = done.refusal;
  }
  throw errorFrom(refusal!);
}

async function once<T>(
  session: Session,
  key: LeaseKey,
  ttlSecs: number,
  plan: () => Promise<GlobalChange<T>>,
  before: LeaseId | null,
): Promise<{ answer: T } | { refusal: Refusal }> {
  const { leases } = await session.acquire([{ key, reach: "repository" }], {
    ttlSecs,
    reason: `changing ${key}`,
  });
  try {
    return await write(session, key, plan);
  } finally {
    const { leaseId } = leases[0]!;
    if (leaseId !== before) await giveBack(session, key, leaseId);
  }
}

async function write<T>(
  session: Session,
  key: LeaseKey,
  plan: () => Promise<GlobalChange<T>>,
): Promise<{ answer: T } | { refusal: Refusal }> {
  let done: { answer: T } | { refusal: Refusal } | null = null;
  await session.write<true>([{ key, leaseId: null }], {
    about: key,
    facts: [],
    body: async ({ refusal }) => {
      if (refusal !== null) {
        done = { refusal };
        return null;
      }
      const { answer, stage, payload } = await plan();
      done = { answer };
      if (stage === null) return null;
      return { type: "policy.changed", payload, facts: new Map(), carryOut: await stage(), answer: true };
    },
  });
  return done!;
}

/** Another command of this session may have released it already, or have taken it over with a secret of its own. */
const NOT_OURS_TO_GIVE = ["E_NOT_FOUND", "E_LOCK_NOT_HELD"];

async function giveBack(session: Session, key: LeaseKey, leaseId: LeaseId): Promise<void> {
  try {
    await session.release([{ key, leaseId }]);
  } catch (error) {
    if (!NOT_OURS_TO_GIVE.includes(String((error as { code?: unknown }).code))) throw error;
  }
}

/** `global_operations.allowed_branches` and `require_main_history`. */
async function requireAllowed({ config, surroundings, repository }: Workspace, scope: Scope): Promise<void> {
  const { platform, git } = surroundings;
  const refusal = await globalRefusal({
    git,
    cwd: repository.worktreeRoot,
    config,
    command: scope === "gates" ? "cotenant gate" : "cotenant config",
    branch: await currentBranch(platform, git, repository.gitDir),
    paths: [FILES[scope]],
  });
  if (refusal !== null) throw refusal;
}
