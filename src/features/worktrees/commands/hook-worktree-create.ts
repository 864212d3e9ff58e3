import { copyFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Command, Context } from "../../../cli/grammar/command";
import { installedFrom } from "../../../cli/grammar/installed";
import { surroundingsIn, Workspace } from "../../../coordinator/workspace";
import { printable } from "../../../kernel/ids";
import { carryAgents } from "../../harnesses/carried-settings";
import { includedFiles, makeWorktree } from "../../harnesses/worktrees";
import { eventFrom, harnessFlag, mainRootOf } from "./worktree-events";

export const command: Command = {
  usage: "hook worktree-create --harness claude < event.json",
  about:
    "Makes the worktree that a harness asks for, as the harness itself would: below .claude/worktrees, on a branch of its own.\nIt gets its identity at once, the files that .worktreeinclude names, and the same settings as this one. Prints its path.",
  flags: harnessFlag,
  examples: ['echo \'{"name":"login"}\' | cotenant hook worktree-create --harness claude'],
  words: { min: 0, max: 0 },
  remindsOfExpiry: false,
  async run(context) {
    const event = await eventFrom();
    const workspace = await context.workspace();
    const { platform, git } = workspace.surroundings;
    const main = mainRootOf(workspace);
    const made = await makeWorktree(git, main, event["name"]);
    const fresh = await Workspace.open(surroundingsIn(workspace.surroundings, made.path), {});
    const { identity } = await fresh.worktree("write");
    if (made.isNew) {
      for (const name of await includedFiles(platform, git, main)) copy(context, main, made.path, name);
      const { failures } = await carryAgents(workspace, fresh, installedFrom(context));
      for (const words of failures) context.note(`cotenant: ${words}`);
    }
    return {
      data: { path: made.path, branch: made.branch, created: made.isNew, worktree_id: identity.worktreeId },
      text: made.path,
    };
  },
};

function copy(context: Context, from: string, to: string, name: string): void {
  try {
    mkdirSync(dirname(join(to, name)), { recursive: true });
    copyFileSync(join(from, name), join(to, name));
  } catch (error) {
    context.note(`cotenant: ${printable(name, 200)} was not copied: ${(error as Error).message}`);
  }
}
