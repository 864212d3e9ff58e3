import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { listWorktrees, type WorktreeEntry } from "../../identity/worktree-list";
import { printable } from "../../kernel/ids";
import { placeNamed, realPlace } from "./place";

/** The worktree that a word names: by its id, its branch or its directory. */
export async function meantWorktree(workspace: Workspace, word: string): Promise<WorktreeEntry> {
  const { platform, git } = workspace.surroundings;
  const all = await listWorktrees(platform, git, workspace.repository);
  const real = await realPlace(platform.files, placeNamed(workspace, word));
  const found =
    all.find(({ worktreeId }) => worktreeId === word) ??
    all.find(({ root }) => root === real) ??
    all.find(({ branch }) => branch === word);
  if (found !== undefined) return found;
  throw new CotenantError("E_NOT_FOUND", `there is no worktree "${printable(word)}" of this repository`, {
    hint: "name one by its id, branch or directory; 'cotenant worktree list' shows them",
    data: { worktree: printable(word) },
  });
}

/** The repository opened in the worktree that a word names; without a word, in the caller's. */
export async function openWorktree(here: Workspace, word: string | undefined): Promise<Workspace> {
  if (word === undefined) return here;
  const { root, exists } = await meantWorktree(here, word);
  if (exists || root === here.repository.worktreeRoot) return here.elsewhere(root);
  throw new CotenantError("E_NOT_FOUND", `the worktree at ${root} is gone`, {
    hint: `make Git forget it: cotenant worktree remove ${printable(root, 500)}`,
    data: { root },
  });
}
