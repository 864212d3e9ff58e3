import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { listWorktrees, type WorktreeEntry } from "../../identity/worktree-list";
import { printable } from "../../kernel/ids";
import { normal } from "./naming";
import { realPlace } from "./place";

/** The worktree that a word names: by its id, its branch or its directory. */
export async function meantWorktree(workspace: Workspace, word: string): Promise<WorktreeEntry> {
  const { platform, git, cwd } = workspace.surroundings;
  const all = await listWorktrees(platform, git, workspace.repository);
  const path = normal(word.startsWith("/") ? word : `${cwd}/${word}`);
  const real = await realPlace(platform.files, path);
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
