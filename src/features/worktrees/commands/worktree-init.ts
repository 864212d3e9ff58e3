import type { Command } from "../../../cli/grammar/command";
import type { Workspace } from "../../../coordinator/workspace";
import { settleWorktreeIdentity, type WorktreeReading } from "../../../identity/worktree";

export const command: Command = {
  usage: "worktree init",
  about:
    "Gives this worktree its identity now. Any writing command does it by itself. Where another worktree of the repository\nhas the same one, this one gets a new one.",
  flags: {},
  examples: ["cotenant worktree init"],
  words: { min: 0, max: 0 },
  async run(context) {
    const workspace = await context.workspace();
    const { identity, standing } = await settled(workspace);
    const text = `${standing === "stored" ? "this worktree is" : "this worktree is now"} ${identity.worktreeId}`;
    return {
      data: {
        worktree: { worktree_id: identity.worktreeId, root: identity.root, branch: identity.branch },
        created: standing !== "stored",
      },
      text: context.quiet ? "" : text,
    };
  },
};

async function settled(workspace: Workspace): Promise<WorktreeReading> {
  const { platform, git } = workspace.surroundings;
  const reading = await settleWorktreeIdentity(platform, git, workspace.repository);
  if (reading.warning !== null) workspace.warnings.push(reading.warning);
  return reading;
}
