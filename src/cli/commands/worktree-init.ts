import type { Command } from "../command";

export const command: Command = {
  usage: "worktree init",
  about: "Gives this worktree its identity now. Any writing command does it by itself.",
  flags: {},
  examples: ["cotenant worktree init"],
  words: { min: 0, max: 0 },
  async run(context) {
    const workspace = await context.workspace();
    const { identity, standing } = await workspace.worktree("write");
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
