import { listWorktrees } from "../../identity/worktree-list";
import type { Descriptor } from "../../platform/platform";
import { askMaybe } from "./git-calls";
import { hereOf, machineOf, runHolding, type Yard } from "./place";

/** A branch that is made for a worktree, at a commit. */
export interface NewBranch {
  readonly branch: string;
  readonly commit: string;
  /** What its reflog says of how it came to be. */
  readonly mark: string;
}

/** Never one that is there: whoever made that one keeps it. */
export function makeBranch(
  yard: Yard,
  { branch, commit, mark }: NewBranch,
  held: readonly Descriptor[],
): Promise<void> {
  const args = ["update-ref", "--create-reflog", "-m", mark, `refs/heads/${branch}`, commit, ""];
  return runHolding(yard, args, { cwd: hereOf(yard), held, doing: "making a branch" });
}

/**
 * Takes it back, if it is as it was made: at its commit, where nothing but its making is on record, and nobody has it
 * checked out. Anything else may be somebody's work.
 */
export async function dropBranch(yard: Yard, { branch, commit, mark }: NewBranch): Promise<void> {
  const { platform, git } = machineOf(yard);
  const ref = `refs/heads/${branch}`;
  const options = { cwd: hereOf(yard) };
  const told = await askMaybe(git, ["log", "--walk-reflogs", "--format=%gs", ref, "--"], options);
  if (told?.trim() !== mark) return;
  for (const worktree of await listWorktrees(platform, git, yard.workspace.repository))
    if (worktree.branch === branch) return;
  await askMaybe(git, ["update-ref", "-d", ref, commit], options);
}
