import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import { toByteText } from "../../../git/byte-text";
import { joinPath, parentOf } from "../../../identity/path-text";
import { printable, type WorktreeId } from "../../../kernel/ids";
import { shellWord } from "../../../kernel/printing";
import { carryAgents, forgetGoneWorktrees } from "../../harnesses/carried-settings";
import type { InstallHow } from "../../harnesses/installation";
import { dropWorktree, includedFiles, type MadeWorktree, makeWorktree } from "../../harnesses/worktrees";
import { makeDirectories } from "../tree-removal";

export interface MadeForHarness extends MadeWorktree {
  readonly worktreeId: WorktreeId;
}

/** What harnesses ask for that have worktrees of their own. */
export const hook = {
  /** The worktree that a harness asks for, as it would have made it, with what a new one gets here. */
  async worktreeCreate(
    workspace: Workspace,
    request: {
      readonly name: unknown;
      /** What the harness's settings there start. */
      readonly program: InstallHow["program"];
      readonly onProgress: (line: string) => void;
    },
  ): Promise<MadeForHarness> {
    const { platform, git } = workspace.surroundings;
    const main = mainRootOf(workspace);
    const made = await makeWorktree(git, main, request.name);
    const fresh = await workspace.elsewhere(made.path);
    const { worktreeId } = (await fresh.worktree("write")).identity;
    if (!made.isNew) return { ...made, worktreeId };
    for (const name of await includedFiles(platform, git, main))
      await copy(workspace, name, { from: main, to: made.path }).catch((error: unknown) =>
        request.onProgress(`${printable(name, 200)} was not copied: ${(error as Error).message}`),
      );
    for (const words of (await carryAgents(workspace, fresh, request.program)).failures)
      request.onProgress(words);
    return { ...made, worktreeId };
  },

  /** Removes the worktree around the caller, if nothing is in it that is nowhere else. */
  async worktreeRemove(workspace: Workspace): Promise<void> {
    const { surroundings, repository } = workspace;
    const { cwd: path } = surroundings;
    const why = await dropWorktree(surroundings.git, mainRootOf(workspace), repository.worktreeRoot);
    // A harness takes success for its being gone, and of a failure shows the beginning.
    if (why !== null)
      throw new CotenantError("E_POLICY", `the worktree stays: ${printable(why, 300)}`, {
        hint: `look at it: git -C ${shellWord(path)} status`,
        data: { path },
      });
    await forgetGoneWorktrees(workspace);
  },
};

function mainRootOf({ repository }: Workspace): string {
  if (repository.mainWorktreeRoot !== null) return repository.mainWorktreeRoot;
  throw new CotenantError("E_NOT_A_REPO", "the repository has no main worktree to make others beside", {
    hint: "make the worktree with 'git worktree add'",
  });
}

/** A file as it is, also where a link leads to it, over what a branch may have of that name. */
async function copy(
  { surroundings }: Workspace,
  name: string,
  { from, to }: { readonly from: string; readonly to: string },
): Promise<void> {
  const { files } = surroundings.platform;
  const trees = await surroundings.tools.trees();
  const [source, target] = [joinPath(from, name), joinPath(to, name)];
  await makeDirectories(trees, toByteText(parentOf(target) ?? to));
  await trees.unlink(toByteText(target));
  await trees.copy(toByteText((await files.realPath(source)) ?? source), toByteText(target));
}
