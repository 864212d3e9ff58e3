import type { Coordinator } from "../../coordinator/contract";
import type { Workspace } from "../../coordinator/workspace";
import type { Repository } from "../../identity/repository";
import { listWorktrees, type WorktreeEntry } from "../../identity/worktree-list";
import { printable, type Ulid } from "../../kernel/ids";
import type { Leaver } from "../../kernel/left-issues";
import type { Git } from "../../platform/git";
import type { Platform } from "../../platform/platform";
import { modesFor } from "../../store/layout";
import type { IssueRow } from "../issues/board";
import { effective, leaverOf, type Workers } from "../issues/effective";
import type { IssueReader } from "../issues/reader";
import type { FoundIssue } from "../issues/resolve";
import { worktreeRecords } from "../worktrees/records";
import { DescriptorStore } from "./descriptor-store";
import { once } from "./stat-cache";

/** Who left an issue unfinished, and where what they did is: in their worktree while it is there, else in a snapshot or a branch. */
export interface AbandonedWork extends Leaver {
  /** The worktree's root; null when it is gone, or is another machine's. */
  readonly root: string | null;
  /** Null when it is gone as well. */
  readonly branch: string | null;
  /** The worktree that has this branch now, where it is not the one in which it was left. */
  readonly checkedOutAt: string | null;
  /** The last one of a worktree that is gone. */
  readonly snapshotId: Ulid | null;
  /** Whether the branch of a worktree that is gone has commits that the main worktree's HEAD has not. */
  readonly hasCommits: boolean;
}

export interface AbandonedPlace {
  readonly platform: Platform;
  readonly git: Git;
  readonly repository: Repository;
  readonly coordinator: Pick<Coordinator, "facts">;
}

export type AbandonedMap = ReadonlyMap<Ulid, AbandonedWork>;

/** Of one issue that was read whole; null where nobody has left it. */
export async function abandonedWorkOn(
  workspace: Workspace,
  reader: IssueReader,
  workers: Workers,
  found: FoundIssue,
): Promise<AbandonedWork | null> {
  const { id, issue } = found;
  const { isAbandoned } = effective(workers, found);
  const row = { id, isAbandoned, updatedBy: issue.updated_by, updatedAt: issue.updated_at };
  return (await abandonedAmong(workspace, reader, workers, [row])).get(id) ?? null;
}

/** Of those among the rows that somebody has left unfinished. */
export function abandonedAmong(
  { surroundings, repository, coordinator }: Workspace,
  reader: IssueReader,
  workers: Workers,
  rows: readonly Pick<IssueRow, "id" | "isAbandoned" | "updatedBy" | "updatedAt">[],
): Promise<AbandonedMap> {
  const { platform, git } = surroundings;
  const abandoned = rows.filter(({ isAbandoned }) => isAbandoned);
  return abandonedWork({ platform, git, repository, coordinator }, reader, workers, abandoned);
}

/** An abandoned issue, as lists have it. */
type Row = { readonly id: Ulid; readonly updatedBy: string; readonly updatedAt: string };

/** Of these issues, all of them abandoned. Costs nothing where there are none. */
export async function abandonedWork(
  place: AbandonedPlace,
  reader: IssueReader,
  workers: Workers,
  rows: readonly Row[],
): Promise<AbandonedMap> {
  const abandoned = new Map<Ulid, AbandonedWork>();
  if (rows.length === 0) return abandoned;
  const stamps = await reader.sources.stamps(rows.map(({ id }) => id));
  const { platform, git, repository } = place;
  const worktrees = await listWorktrees(platform, git, repository);
  const find = finder(place, worktrees);
  for (const row of rows) {
    const leaver = leaverOf(workers, row.id, stamps.get(row.id) ?? null, row);
    abandoned.set(row.id, await find(leaver));
  }
  return abandoned;
}

function finder(place: AbandonedPlace, worktrees: readonly WorktreeEntry[]) {
  const { platform, git, repository, coordinator } = place;
  const records = once(() => worktreeRecords(coordinator));
  const modes = modesFor(repository.config.sharedRepository);
  const snapshots = once(() => new DescriptorStore(platform, repository.controlDir, modes).all());
  const branchExists = async (branch: string) =>
    (
      await git.run(["show-ref", "--verify", "--quiet", `refs/heads/${branch}`], {
        cwd: repository.worktreeRoot,
      })
    ).status === 0;
  const hasCommits = async (branch: string) => {
    const cwd = repository.mainWorktreeRoot ?? repository.worktreeRoot;
    const args = ["merge-base", "--is-ancestor", `refs/heads/${branch}`, "HEAD"];
    return (await git.run(args, { cwd })).status !== 0;
  };
  return async (leaver: Leaver): Promise<AbandonedWork> => {
    const { worktreeId } = leaver;
    const nowhere = { root: null, branch: null, checkedOutAt: null, snapshotId: null, hasCommits: false };
    if (worktreeId === null) return { ...leaver, ...nowhere };
    const entry = worktrees.find((worktree) => worktree.exists && worktree.worktreeId === worktreeId);
    if (entry !== undefined) return { ...leaver, ...nowhere, root: entry.root, branch: entry.branch };
    const last = (await snapshots()).filter(({ worktree_id }) => worktree_id === worktreeId).at(-1);
    const named = leaver.branch ?? (await records()).get(worktreeId)?.branch ?? last?.branch ?? null;
    const branch = named !== null && (await branchExists(named)) ? named : null;
    const other = worktrees.find((worktree) => worktree.exists && worktree.branch === branch);
    return {
      ...leaver,
      ...nowhere,
      branch,
      checkedOutAt: branch === null ? null : (other?.root ?? null),
      snapshotId: last?.snapshot_id ?? null,
      hasCommits: branch !== null && (await hasCommits(branch)),
    };
  };
}

/** As the end of a sentence about the issue. `here`: the root of the worktree that the reader of it is in. */
export function abandonedText(left: AbandonedWork, here: string): string {
  return `left by ${left.agentId || "somebody"} at ${printable(left.at, 40)}, unfinished and not given back; ${placeText(left, here)}`;
}

function placeText(
  { root, branch, snapshotId, checkedOutAt, hasCommits }: AbandonedWork,
  here: string,
): string {
  const on = branch === null ? "" : ` (branch ${printable(branch)})`;
  if (root === here) return `any changes are in this worktree${on}`;
  if (root !== null) return `any changes are in ${printable(root, 500)}${on}`;
  if (snapshotId !== null) return `its worktree is gone, its changes are snapshot ${snapshotId}${on}`;
  if (branch === null) return "where any changes are is not known here";
  const where = checkedOutAt === null ? "" : `, checked out in ${printable(checkedOutAt, 500)}`;
  return hasCommits
    ? `its worktree is gone, its commits are on branch ${printable(branch)}${where}`
    : `its worktree is gone, and its branch ${printable(branch)}${where} has nothing that is not merged`;
}
