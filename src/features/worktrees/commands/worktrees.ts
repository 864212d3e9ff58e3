/** A worktree as programs see it. */
export function worktreeJson(worktree: {
  readonly worktreeId: string | null;
  readonly root: string;
  readonly branch: string | null;
  readonly isMain: boolean;
  readonly gitDir: string;
  readonly exists: boolean;
}): Record<string, unknown> {
  return {
    worktree_id: worktree.worktreeId,
    root: worktree.root,
    branch: worktree.branch,
    is_main: worktree.isMain,
    git_dir: worktree.gitDir,
    exists: worktree.exists,
  };
}
