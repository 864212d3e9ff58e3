import type { LocalCoordinator } from "../../coordinator/local";
import type { Session } from "../../coordinator/session";
import { CotenantError } from "../../errors/cotenant-error";
import { dirtyPaths, pathspecsOf } from "../../identity/dirty-paths";
import type { Repository } from "../../identity/repository";
import { listWorktrees } from "../../identity/worktree-list";
import type { FactName } from "../../kernel/facts";
import { type AgentId, agentType, type LeaseId, printable, type WorktreeId } from "../../kernel/ids";
import type { Git } from "../../platform/git";
import type { Platform } from "../../platform/platform";
import { type GuardViolation, guardViolations, settleViolations } from "./violations";

/** What a command changed under somebody else's lease, as it stands now. */
export interface Trespass {
  readonly name: FactName;
  /** As people type it: the beginning of the name's digits. */
  readonly id: string;
  readonly violation: GuardViolation;
  /** Somebody still has to look at it. */
  readonly isOpen: boolean;
}

export interface Looking {
  readonly platform: Platform;
  readonly git: Git;
  readonly repository: Repository;
  readonly coordinator: LocalCoordinator;
}

const ID_DIGITS = 8;

/**
 * All that are on record. One is not open any more when both sessions are over, so that nobody is left to ask, and the file is
 * as it is committed, so that nothing is left to look at. In doubt it is open. `gc` puts on record which are not.
 */
export async function trespasses(looking: Looking): Promise<Trespass[]> {
  const all = await guardViolations(looking.coordinator);
  if (all.length === 0) return [];
  const valid = new Set((await looking.coordinator.list()).map(({ lease }) => lease.leaseId));
  const over: GuardViolation[] = [];
  for (const [, violation] of all) if (await areOver(looking, violation, valid)) over.push(violation);
  const closed = over.length === 0 ? new Set() : await unchangedAmong(looking, over);
  return all.map(([name, violation]) => ({
    name,
    id: name.slice(name.indexOf(":") + 1).slice(0, ID_DIGITS),
    violation,
    isOpen: !closed.has(violation),
  }));
}

/** Somebody has looked at them: a person, or whoever held the file. Whose command it was is not who says that all is well. */
export async function settleSeen(session: Session, seen: readonly Trespass[]): Promise<void> {
  const { agentId } = session.actor;
  const isPerson = ["human", "admin"].includes(agentType(agentId));
  const foreign = isPerson ? undefined : seen.find(({ violation: { owner } }) => owner !== agentId);
  if (foreign !== undefined) throw notTheirs(agentId, foreign);
  await settleViolations(
    session,
    seen.map(({ name, violation }) => [name, violation]),
    "seen",
  );
}

function notTheirs(agentId: AgentId, { id, violation: { path, owner } }: Trespass): CotenantError {
  return new CotenantError(
    "E_POLICY",
    `${agentId} did not hold ${printable(path, 200)}, and is no person: it cannot say that all is well there`,
    {
      hint: `let ${owner} run 'cotenant guard settle ${id}', or a person, with a human: or admin: id`,
      data: { agent_id: agentId, owner },
    },
  );
}

async function areOver(
  { platform }: Looking,
  { holder, ownerHolder, leaseId }: GuardViolation,
  valid: ReadonlySet<LeaseId>,
): Promise<boolean> {
  if (holder === null || ownerHolder === null || valid.has(leaseId)) return false;
  const { processes } = platform;
  return (await processes.liveness(holder)) === "dead" && (await processes.liveness(ownerHolder)) === "dead";
}

/** Those whose files are as HEAD has them, or whose worktree is gone. */
async function unchangedAmong(
  { platform, git, repository }: Looking,
  violations: readonly GuardViolation[],
): Promise<ReadonlySet<GuardViolation>> {
  const places = await listWorktrees(platform, git, repository);
  const found = new Set<GuardViolation>();
  const byWorktree = new Map<WorktreeId, GuardViolation[]>();
  for (const one of violations)
    byWorktree.set(one.worktreeId, [...(byWorktree.get(one.worktreeId) ?? []), one]);
  for (const [worktreeId, there] of byWorktree) {
    const root = places.find((place) => place.exists && place.worktreeId === worktreeId)?.root;
    const dirty = root === undefined ? [] : await dirtyIn(git, root, there);
    for (const one of there) if (dirty !== null && !dirty.includes(one.path)) found.add(one);
  }
  return found;
}

/** Null where Git does not say. */
async function dirtyIn(
  git: Git,
  root: string,
  violations: readonly GuardViolation[],
): Promise<readonly string[] | null> {
  const specs = pathspecsOf(violations.map(({ path }) => path));
  return dirtyPaths(git, root, specs).catch(() => null);
}
