import type { Workspace } from "../../../coordinator/workspace";
import { printable, type Ulid } from "../../../kernel/ids";
import { shellWord } from "../../../kernel/shell-word";
import type { LeftMap, LeftWork } from "../../snapshots/left-work";
import { defaultPlace } from "../../worktrees/names";

export function leftJsonOf(left: LeftMap, id: Ulid): Record<string, unknown> | null {
  const work = left.get(id);
  return work === undefined ? null : leftJson(work);
}

export function leftJson(left: LeftWork): Record<string, unknown> {
  return {
    agent_id: left.agentId,
    at: left.at,
    worktree_id: left.worktreeId,
    root: left.root,
    branch: left.branch,
    snapshot_id: left.snapshotId,
  };
}

/** As the end of a sentence about the issue. `here`: the root of the worktree that the reader of it is in. */
export function leftText(left: LeftWork, here: string): string {
  return `left by ${left.agentId || "somebody"} at ${printable(left.at, 40)}, unfinished and not given back; ${placeText(left, here)}`;
}

function placeText({ root, branch, snapshotId, checkedOutAt, hasCommits }: LeftWork, here: string): string {
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

/** Who goes on, and where. */
export interface TakingOver {
  readonly shortId: string;
  readonly agentId: string;
  readonly workspace: Workspace;
}

/**
 * The command with which whoever has just claimed it goes on where it was left; null where there is nothing to go to. The
 * claim goes along: what is written is written where it is held.
 */
function takeOverCommand(left: LeftWork, { shortId, agentId, workspace }: TakingOver): string | null {
  const { root, worktreeId, snapshotId, branch, checkedOutAt } = left;
  const { worktreeRoot, mainWorktreeRoot } = workspace.repository;
  const placeFor = (name: string) =>
    defaultPlace(mainWorktreeRoot ?? worktreeRoot, workspace.config.values["worktree.directory"], name);
  const transferTo = (worktree: string) =>
    `cotenant claim transfer ${shortId} --to-agent ${agentId} --to-worktree ${shellWord(worktree)} --reason "go on where it was left"`;
  if (root === worktreeRoot) return null;
  if (root !== null) return `${transferTo(worktreeId ?? root)} && cd ${shellWord(root)}`;
  if (snapshotId !== null) {
    const place = placeFor(`restored-${shortId}`);
    return `cotenant restore ${snapshotId} --path ${shellWord(place)} && ${transferTo(place)} && cd ${shellWord(place)}`;
  }
  if (branch === null || checkedOutAt !== null) return null;
  return `cotenant worktree create ${shellWord(branch)} --issue ${shortId} && cd ${shellWord(placeFor(branch))}`;
}

/** What whoever has claimed left work is told below the claim. */
export function takeOverLines(left: LeftWork | null, who: TakingOver): string[] {
  if (left === null) return [];
  const command = takeOverCommand(left, who);
  return [
    `  ${leftText(left, who.workspace.repository.worktreeRoot)}`,
    ...(command === null ? [] : [`  go on there: ${command}`]),
  ];
}
