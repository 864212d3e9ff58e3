import type { Workspace } from "../../../coordinator/workspace";
import { shellWord } from "../../../kernel/printing";
import { type AbandonedWork, abandonedText } from "../../snapshots/abandoned-work";
import { defaultPlace } from "../../worktrees/names";

export function abandonedJson(left: AbandonedWork | null | undefined): Record<string, unknown> | null {
  if (left == null) return null;
  return {
    agent_id: left.agentId,
    at: left.at,
    worktree_id: left.worktreeId,
    root: left.root,
    branch: left.branch,
    snapshot_id: left.snapshotId,
  };
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
function takeOverCommand(left: AbandonedWork, { shortId, agentId, workspace }: TakingOver): string | null {
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

/** What whoever has claimed abandoned work is told below the claim. */
export function takeOverLines(left: AbandonedWork | null, who: TakingOver): string[] {
  if (left === null) return [];
  const command = takeOverCommand(left, who);
  return [
    `  ${abandonedText(left, who.workspace.repository.worktreeRoot)}`,
    ...(command === null ? [] : [`  go on there: ${command}`]),
  ];
}
