import type { Coordinator } from "../../coordinator/contract";
import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { type CotenantError, policyError } from "../../errors/cotenant-error";
import { dirtyPaths, pathspecsOf } from "../../identity/dirty-paths";
import { listWorktrees } from "../../identity/worktree-list";
import { type Fact, type FactName, factName } from "../../kernel/facts";
import {
  type AgentId,
  agentType,
  type LeaseId,
  printable,
  type SessionId,
  type WorktreeId,
} from "../../kernel/ids";
import type { LeaseKey } from "../../kernel/keys";
import type { Holder } from "../../kernel/lease";
import type { Git } from "../../platform/git";
import type { Digest } from "../../platform/platform";

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
  /** The processes of both, which say when they are over; null where an older version has put it down. */
  readonly holder: Holder | null;
  readonly ownerHolder: Holder | null;
}

export const GUARD_VIOLATION = "guard-violation";

function violationFactName(
  digest: Digest,
  { worktreeId, key, agentId, leaseId }: Omit<GuardViolation, "at">,
): FactName {
  const id = digest.sha256([worktreeId, key, agentId, leaseId].join("\n")).slice(0, 32);
  return factName(GUARD_VIOLATION, id);
}

/** `sinceMs`: when the command began. What was put on record since then, another report of the same command has said. */
export async function recordViolations(
  session: Session,
  digest: Digest,
  violations: readonly Omit<GuardViolation, "at">[],
  sinceMs: number,
): Promise<void> {
  if (violations.length === 0) return;
  const names = violations.map((violation) => violationFactName(digest, violation));
  await session.write([], {
    about: violations[0]!.path,
    facts: names,
    body: async ({ now, facts: known }) => {
      const at = new Date(now.wallMs).toISOString();
      const fresh = violations.filter((_, i) => {
        const fact = known.get(names[i]!);
        return fact === undefined || !(Date.parse(violationFromFact(fact.value).at) >= sinceMs);
      });
      if (fresh.length === 0) return null;
      const facts = new Map<FactName, Fact>(
        fresh.map((violation) => [violationFactName(digest, violation), toFact({ ...violation, at })]),
      );
      return {
        type: "guard.violated",
        payload: {
          command: fresh[0]!.command,
          files: fresh.map((one) => {
            return { path: one.path, agent_id: one.agentId, owner: one.owner, lease_id: one.leaseId };
          }),
        },
        facts,
        answer: true,
      };
    },
  });
}

/** `seen`: somebody who may has said so. `committed`: with the file. `over`: nobody is left, and the file is as it is committed. */
export type Settlement = "seen" | "committed" | "over";

const MOST_AT_ONCE = 500;

/** Nobody has to look at these any more. The log keeps them. Answers how many were still on record. */
export async function settleViolations(
  session: Session,
  settled: readonly (readonly [FactName, GuardViolation])[],
  how: Settlement,
): Promise<number> {
  let count = 0;
  for (let at = 0; at < settled.length; at += MOST_AT_ONCE) {
    const some = settled.slice(at, at + MOST_AT_ONCE);
    const written = await session.write([], {
      about: some[0]![1].path,
      facts: some.map(([name]) => name),
      body: async ({ facts }) => {
        const known = some.filter(([name]) => facts.has(name));
        if (known.length === 0) return null;
        const files = known.map(([, { path, agentId, owner }]) => ({ path, agent_id: agentId, owner }));
        return {
          type: "guard.settled",
          payload: { how, files },
          facts: new Map(known.map(([name]) => [name, null])),
          answer: known.length,
        };
      },
    });
    count += written.replayed ? 0 : (written.answer ?? 0);
  }
  return count;
}

export async function guardViolations(coordinator: Coordinator): Promise<[FactName, GuardViolation][]> {
  const facts = await coordinator.facts({ kinds: [GUARD_VIOLATION] });
  return [...facts].map(([name, { value }]) => [name, violationFromFact(value)]);
}

/** Of the fact, in the order in which they are written; all of them texts. */
const FIELDS = {
  path: "path",
  key: "key",
  worktree_id: "worktreeId",
  agent_id: "agentId",
  session_id: "sessionId",
  owner: "owner",
  owner_session_id: "ownerSession",
  lease_id: "leaseId",
  at: "at",
  command: "command",
} as const;

function toFact(violation: GuardViolation): Fact {
  const { holder, ownerHolder } = violation;
  return {
    ...Object.fromEntries(Object.entries(FIELDS).map(([wire, name]) => [wire, violation[name]])),
    ...(holder === null ? {} : { holder: { ...holder } }),
    ...(ownerHolder === null ? {} : { owner_holder: { ...ownerHolder } }),
  };
}

export function violationFromFact(fact: Fact): GuardViolation {
  const texts = Object.entries(FIELDS).map(([wire, name]) => [name, String(fact[wire] ?? "")]);
  const holders = { holder: holderFrom(fact["holder"]), ownerHolder: holderFrom(fact["owner_holder"]) };
  return { ...(Object.fromEntries(texts) as Omit<GuardViolation, keyof typeof holders>), ...holders };
}

function holderFrom(value: unknown): Holder | null {
  return typeof value === "object" && value !== null ? (value as Holder) : null;
}

// --- as they stand now ------------------------------------------------------------------------------------

/** What a command changed under somebody else's lease, as it stands now. */
export interface SeenViolation {
  readonly name: FactName;
  /** As people type it: the beginning of the name's digits. */
  readonly id: string;
  readonly violation: GuardViolation;
  /** Somebody still has to look at it. */
  readonly isOpen: boolean;
}

const ID_DIGITS = 8;

/**
 * All that are on record. One is not open any more when both sessions are over, so that nobody is left to ask, and the file is
 * as it is committed, so that nothing is left to look at. In doubt it is open. `gc` puts on record which are not.
 */
export async function seenViolations(workspace: Workspace): Promise<SeenViolation[]> {
  const all = await guardViolations(workspace.coordinator);
  if (all.length === 0) return [];
  const valid = new Set((await workspace.coordinator.list()).map(({ lease }) => lease.leaseId));
  const over: GuardViolation[] = [];
  for (const [, violation] of all) if (await areOver(workspace, violation, valid)) over.push(violation);
  const closed = over.length === 0 ? new Set() : await unchangedAmong(workspace, over);
  return all.map(([name, violation]) => ({
    name,
    id: name.slice(name.indexOf(":") + 1).slice(0, ID_DIGITS),
    violation,
    isOpen: !closed.has(violation),
  }));
}

/** Somebody has looked at them: a person, or whoever held the file. Whose command it was is not who says that all is well. */
export async function settleSeen(session: Session, seen: readonly SeenViolation[]): Promise<void> {
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

function notTheirs(agentId: AgentId, { id, violation: { path, owner } }: SeenViolation): CotenantError {
  return policyError(
    `${agentId} did not hold ${printable(path, 200)}, and is no person: it cannot say that all is well there`,
    `let ${owner} run 'cotenant guard settle ${id}', or a person, with a human: or admin: id`,
    { agent_id: agentId, owner },
  );
}

async function areOver(
  { surroundings }: Workspace,
  { holder, ownerHolder, leaseId }: GuardViolation,
  valid: ReadonlySet<LeaseId>,
): Promise<boolean> {
  if (holder === null || ownerHolder === null || valid.has(leaseId)) return false;
  const { processes } = surroundings.platform;
  return (await processes.liveness(holder)) === "dead" && (await processes.liveness(ownerHolder)) === "dead";
}

/** Those whose files are as HEAD has them, or whose worktree is gone. */
async function unchangedAmong(
  { surroundings, repository }: Workspace,
  violations: readonly GuardViolation[],
): Promise<ReadonlySet<GuardViolation>> {
  const { platform, git } = surroundings;
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
