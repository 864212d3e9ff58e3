import { CotenantError } from "../../errors/cotenant-error";
import { listWorktrees, type WorktreeEntry } from "../../identity/worktree-list";
import { printable } from "../../kernel/ids";
import { sameParty } from "../../kernel/lease";
import { isCutOff } from "../../platform/git";
import { mainRef } from "../hooks/divergence";
import { tipOf } from "../publish/base";
import { branchName, isProtected, usesOf } from "../publish/branch-rules";
import { silent } from "../publish/push";
import { machineOf } from "../worktrees/place";
import { worktreeRecords } from "../worktrees/records";
import { removeWorktree } from "../worktrees/removal";
import { atRisk, isAsCommitted } from "../worktrees/removal-risk";
import { underWriterLock } from "../worktrees/writer-lock";
import { entriesOf, type LandEntry } from "./entry";
import type { LandRun } from "./land-run";
import { shownBranch } from "./target";

/**
 * Deletes what a landed entry has left behind: its worktree, if cotenant made it and nothing in it exists only there, and
 * its branch, if that is still what landed. Answers what it did, for people; what it leaves, it leaves for a reason that is
 * told as a note.
 */
export async function cleanUp(run: LandRun, entry: LandEntry): Promise<string[]> {
  const { parts, tell } = run;
  const { workspace } = parts;
  const done: string[] = [];
  try {
    if ((await tipOf(workspace, entry.branch)) !== entry.commit) return done;
    const wanted = await whyWanted(run, entry);
    if (wanted !== null) {
      tell("note", `kept the branch ${shownBranch(entry.branch)}: ${wanted}`, entry);
      return done;
    }
    await note(run, entry);
    const worktree = await worktreeOn(run, entry);
    if (worktree !== null) {
      const reason = await whyKept(run, worktree);
      if (reason !== null) {
        tell("note", `kept ${printable(worktree.root, 300)}: ${reason}`, entry);
        return done;
      }
      await remove(run, worktree);
      done.push(`removed the worktree ${printable(worktree.root, 300)}`);
    }
    if (await dropBranch(run, entry)) done.push(`deleted the branch ${shownBranch(entry.branch)}`);
    if (await dropRemoteBranch(run, entry))
      done.push(`deleted the branch ${shownBranch(entry.branch)} of ${printable(run.remote ?? "", 100)}`);
  } catch (error) {
    // It has landed, whatever becomes of the rest.
    if (!(error instanceof CotenantError)) throw error;
    tell("note", `not cleaned up after ${shownBranch(entry.branch)}: ${error.message}`, entry);
  }
  return done;
}

/** Null where the branch was only there to land. */
async function whyWanted({ yard }: LandRun, { entryId, branch }: LandEntry): Promise<string | null> {
  const { coordinator, config, surroundings, repository } = yard.workspace;
  const { values } = config;
  const main = await mainRef(
    surroundings.git,
    repository.worktreeRoot,
    values["global_operations.main_branch"],
  );
  const known = [main?.branch ?? null, values["land.target"], ...values["publish.protected"]];
  if (isProtected(branch, known)) return "it is protected";
  const other = (await entriesOf(coordinator)).find(
    (one) => one.entryId !== entryId && one.state !== "landed" && [one.branch, one.target].includes(branch),
  );
  if (other === undefined) return null;
  return other.target === branch
    ? `${shownBranch(other.branch)} is to land there`
    : `it is in the queue for ${shownBranch(other.target)} as well`;
}

async function note({ yard }: LandRun, { entryId, target, branch, commit }: LandEntry): Promise<void> {
  await yard.session.log(`land ${target}`, {
    type: "land.cleaning",
    payload: { target, entry_id: entryId, branch, commit },
  });
}

async function worktreeOn({ yard }: LandRun, { branch }: LandEntry): Promise<WorktreeEntry | null> {
  const { platform, git } = machineOf(yard);
  const all = await listWorktrees(platform, git, yard.workspace.repository);
  return all.find((one) => one.exists && one.branch === branchName(branch)) ?? null;
}

/** Null where nothing would be lost, and nobody is there. */
async function whyKept({ yard }: LandRun, worktree: WorktreeEntry): Promise<string | null> {
  const { worktreeId, isMain, root } = worktree;
  const { coordinator, repository } = yard.workspace;
  if (isMain) return "it is the main worktree";
  if (root === repository.worktreeRoot) return "the queue is run from there";
  if (worktreeId === null || !(await worktreeRecords(coordinator)).has(worktreeId))
    return "cotenant did not make it";
  const held = (await coordinator.list()).find(
    ({ lease, standing }) => standing === "valid" && lease.worktreeId === worktreeId,
  );
  if (held !== undefined) return `${held.lease.agentId} holds ${printable(held.lease.key)} from there`;
  const risk = await atRisk(yard, worktree);
  if (risk.underWay !== null) return `it is in the middle of ${risk.underWay}`;
  if (risk.isDirty) return "it has changes that are not committed";
  return risk.tips.length > 0 ? "it has commits that no branch leads to" : null;
}

async function remove({ yard }: LandRun, worktree: WorktreeEntry): Promise<void> {
  const { git } = machineOf(yard);
  const worktreeId = worktree.worktreeId!;
  const session = yard.session.elsewhere({ worktreeId, branch: worktree.branch });
  await underWriterLock(session, () =>
    removeWorktree(yard, worktree, {
      snapshotId: null,
      isSame: (root) => isAsCommitted({ git, trees: yard.trees }, { ...worktree, root }),
    }),
  );
}

/** Git compares and deletes as one. */
async function dropBranch({ yard }: LandRun, { branch, commit }: LandEntry): Promise<boolean> {
  const { platform, git } = machineOf(yard);
  const { repository } = yard.workspace;
  if ((await usesOf(platform, git, repository, branch)).length > 0) return false;
  const { lease } = (await heldByOthers(yard, branch)) ?? {};
  if (lease !== undefined) return false;
  const args = ["update-ref", "-d", "--end-of-options", branch, commit];
  return (await git.run(args, { cwd: repository.worktreeRoot })).status === 0;
}

async function heldByOthers(yard: LandRun["yard"], branch: string) {
  const found = await yard.workspace.coordinator.list();
  return found.find(
    ({ lease, standing }) =>
      standing === "valid" && lease.key === `ref:${branch}` && !sameParty(lease, yard.session.actor),
  );
}

async function dropRemoteBranch({ parts, remote }: LandRun, { branch, commit }: LandEntry): Promise<boolean> {
  if (remote === null) return false;
  const { workspace } = parts;
  const lease = `--force-with-lease=${branch}:${commit}`;
  const args = ["push", "--porcelain", "--no-progress", lease, "--end-of-options", remote, `:${branch}`];
  try {
    const { status } = await workspace.surroundings.git.run(args, {
      cwd: workspace.repository.worktreeRoot,
      env: await silent(workspace),
      timeoutMs: workspace.config.values["publish.push_timeout_secs"] * 1000,
    });
    return status === 0;
  } catch (error) {
    if (isCutOff(error)) return false;
    throw error;
  }
}
