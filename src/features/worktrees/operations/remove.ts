import type { LeaseStatus } from "../../../coordinator/contract";
import type { Session } from "../../../coordinator/session";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError, conflictError, policyError } from "../../../errors/cotenant-error";
import { listWorktrees, type WorktreeEntry } from "../../../identity/worktree-list";
import { type Actor, byKey } from "../../../kernel/commands";
import { printable, type WorktreeId } from "../../../kernel/ids";
import type { LeaseKey } from "../../../kernel/keys";
import { sameParty } from "../../../kernel/lease";
import { forgetGoneWorktrees } from "../../harnesses/carried-settings";
import { issuesIn } from "../../issues/desk";
import { isFound } from "../../issues/resolve";
import { shortId } from "../../issues/short-id";
import { uncommittedIssues } from "../../issues/uncommitted";
import { ledgerInFront } from "../../ledger/in-front";
import { tellLedger } from "../../locks/operations";
import { keepBeforeRemoval } from "../../snapshots/removal-snapshot";
import { snapshotContext } from "../../snapshots/snapshot-context";
import { cachePath } from "../../snapshots/stat-cache";
import { accessOf } from "../access";
import { settleMakings } from "../construction";
import { forgetGone, refuseLockedByGit } from "../git-records";
import { meantWorktree } from "../meant";
import type { Yard } from "../place";
import { removeWorktree, settleRemovals } from "../removal";
import { type AtRisk, atRisk } from "../removal-risk";
import { underWriterLock, writerKey } from "../writer-lock";

export interface Removed extends Pick<WorktreeEntry, "root" | "branch" | "isReplaced"> {
  readonly worktreeId: WorktreeId | null;
  /** What was not committed there. */
  readonly snapshotId: string | null;
  /** Whether only Git's record was left of it. */
  readonly wasGone: boolean;
  /** A ref to what that record alone led to. */
  readonly keptRef: string | null;
  /** The caller's leases that ended with it. */
  readonly released: readonly LeaseKey[];
  readonly stillHeld: readonly LeaseStatus[];
  /** Issues whose last write went with it: what was done there counts for others only once it is committed and merged. */
  readonly issues: readonly { readonly shortId: string; readonly state: string }[];
}

/** Takes a worktree away. What exists nowhere else is kept as a snapshot first; its branch stays. */
export async function remove(
  workspace: Workspace,
  request: {
    readonly worktree: string;
    /** Refuse instead, where there is something to be kept. */
    readonly noSnapshot?: boolean;
    /** Keep what Git ignores, too. */
    readonly ignored?: boolean;
  },
): Promise<Removed> {
  const trees = await workspace.surroundings.tools.trees();
  const yard: Yard = { workspace, session: await workspace.session("write"), trees };
  await settleMakings(yard);
  await settleRemovals(yard);
  const entry = await meantWorktree(workspace, request.worktree);
  if (entry.isMain)
    throw policyError(
      `${printable(entry.root, 500)} is the main worktree: it is not removed`,
      "name a linked one; 'cotenant worktree list' shows them",
    );
  await refuseLockedByGit(yard, entry);
  if (!entry.exists) return removeGone(yard, entry);
  const staying = await stayingWorkspace(workspace, entry);
  const there = await staying.elsewhere(entry.root);
  const context = await snapshotContext(there);
  const { session } = context;
  const { worktreeId } = session.actor;
  await refuseHeld(there, session.actor);
  const risk = await atRisk(yard, entry);
  refuseRisk(risk, entry.root, request.noSnapshot === true);
  const issues = await issuesOnlyThere(there);
  const identified = { ...entry, worktreeId };
  const act = async () => {
    const kept = await keepBeforeRemoval(context, identified, risk, request.ignored === true);
    await removeWorktree(yard, identified, kept);
    return kept.snapshotId;
  };
  const isShared = (await accessOf(there.coordinator, worktreeId)) === "shared";
  const snapshotId = isShared ? await act() : await underWriterLock(session, act);
  for (const withIgnored of [false, true])
    await workspace.surroundings.platform.files.unlink(
      cachePath(workspace.repository.controlDir, worktreeId, withIgnored),
    );
  await forgetGoneWorktrees(staying);
  const released = await giveBack(workspace, session);
  const { root, branch, isReplaced } = entry;
  return {
    ...{ worktreeId, root, branch, isReplaced, snapshotId, released, issues },
    ...{ wasGone: false, keptRef: null, stillHeld: [] },
  };
}

/** Only Git's record is left of it, and that goes. */
async function removeGone(yard: Yard, entry: WorktreeEntry): Promise<Removed> {
  const { root, branch, isReplaced } = entry;
  const { worktreeId, keptRef, leases } = await forgetGone(yard, entry);
  await forgetGoneWorktrees(yard.workspace);
  const released = leases.ended.map(({ key }) => key);
  const { stillHeld } = leases;
  return {
    ...{ worktreeId, root, branch, isReplaced, keptRef, released, stillHeld },
    ...{ wasGone: true, snapshotId: null, issues: [] },
  };
}

/**
 * For those who take a worktree away, also the one around the caller: a workspace of the repository that stays. The ledger's
 * commands run where it is.
 */
async function stayingWorkspace(here: Workspace, going: WorktreeEntry): Promise<Workspace> {
  const { repository, surroundings } = here;
  if (repository.worktreeRoot !== going.root) return here;
  const all = await listWorktrees(surroundings.platform, surroundings.git, repository);
  const other = all.find(({ root, exists }) => exists && root !== going.root);
  // In a bare repository it may be the only one.
  return other === undefined ? here : here.elsewhere(other.root, ledgerInFront);
}

const MOST_TOLD = 10;

async function issuesOnlyThere(there: Workspace): Promise<Removed["issues"]> {
  const ids = await uncommittedIssues(there.surroundings.git, there.repository.worktreeRoot);
  if (ids.length === 0) return [];
  const reader = await issuesIn(there);
  const all = await reader.ids();
  const found = await reader.findAll(ids.slice(0, MOST_TOLD));
  return [...found].flatMap(([id, one]) =>
    isFound(one) ? [{ shortId: shortId(id, all), state: one.state }] : [],
  );
}

/** What the caller holds from it; what cannot be given back runs out, and that is said. */
async function giveBack(here: Workspace, there: Session): Promise<readonly LeaseKey[]> {
  const refs = (await there.mine()).map(({ lease }) => byKey(lease.key));
  if (refs.length === 0) return [];
  try {
    const change = await there.release(refs);
    tellLedger(here, change);
    return change.leases.map(({ key }) => key);
  } catch (error) {
    const keys = refs.map(({ key }) => printable(key ?? "")).join(", ");
    here.warnings.push(`not given back: ${keys} (${(error as Error).message}); it runs out by itself`);
    return [];
  }
}

async function refuseHeld(there: Workspace, actor: Actor): Promise<void> {
  const held = (await there.coordinator.list()).filter(
    ({ lease }) =>
      (lease.worktreeId === actor.worktreeId || lease.key === writerKey(actor.worktreeId)) &&
      !sameParty(lease, actor),
  );
  const [first] = held;
  if (first === undefined) return;
  throw conflictError(
    `${first.lease.agentId} works there: it holds ${printable(first.lease.key)}`,
    "wait until its leases are given back or have run out; 'cotenant worktree list' shows them",
    { holders: held.map(({ lease }) => ({ agent_id: lease.agentId, key: lease.key })) },
  );
}

function refuseRisk({ underWay, isDirty, tips }: AtRisk, root: string, refusesToKeep: boolean): void {
  if (underWay !== null)
    throw new CotenantError("E_POLICY", `${underWay} is under way in ${printable(root, 500)}`, {
      hint: "finish it or give it up there first",
      data: { root },
    });
  if (!refusesToKeep || (!isDirty && tips.length === 0)) return;
  throw new CotenantError("E_POLICY", `${printable(root, 500)} has work that exists nowhere else`, {
    hint: "commit it, or leave out --no-snapshot: then it is kept as a snapshot first",
    data: { root, dirty: isDirty, commits: tips.length },
  });
}
