import type { Command } from "../../../cli/grammar/command";
import { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import { isAbsolute } from "../../../identity/path-text";
import { printable } from "../../../kernel/ids";
import { shellWord } from "../../../kernel/printing";
import { forgetGoneWorktrees } from "../../harnesses/carried-settings";
import { dropWorktree } from "../../harnesses/worktrees";
import { eventFrom, harnessFlag, mainRootOf } from "./worktree-events";

export const command: Command = {
  usage: "hook worktree-remove --harness claude < event.json",
  about:
    "Removes the worktree that a harness has done with, if nothing is in it that is nowhere else: changes, and commits that no\nbranch leads to, keep it, and the answer says so (exit 9). Its branch goes with it only where it is merged.",
  flags: harnessFlag,
  examples: ['echo "{\\"worktree_path\\":\\"$PWD\\"}" | cotenant hook worktree-remove --harness claude'],
  words: { min: 0, max: 0 },
  remindsOfExpiry: false,
  async run(context) {
    const { worktree_path: path } = await eventFrom();
    if (typeof path !== "string" || !isAbsolute(path))
      throw new CotenantError("E_USAGE", "the harness did not say which worktree", {
        hint: 'the event needs "worktree_path", an absolute path',
      });
    const surroundings = { ...context.surroundings(), cwd: path };
    const workspace = await Workspace.open(surroundings, {});
    const main = mainRootOf(workspace);
    const why = await dropWorktree(surroundings.git, main, workspace.repository.worktreeRoot);
    // A harness takes success for its being gone, and of a failure shows the beginning.
    if (why !== null)
      throw new CotenantError("E_POLICY", `the worktree stays: ${printable(why, 300)}`, {
        hint: `look at it: git -C ${shellWord(path)} status`,
        data: { path },
      });
    await forgetGoneWorktrees(workspace);
    return { data: { path }, text: "" };
  },
};
