import { listWorktrees } from "../../identity/worktree-list";
import type { Command } from "../command";
import { columns } from "../render";
import { worktreeJson } from "../worktrees";

export const command: Command = {
  usage: "worktree list",
  about: "Lists all worktrees of this repository with the number of leases taken from each.",
  flags: {},
  examples: ["cotenant worktree list"],
  words: { min: 0, max: 0 },
  async run(context) {
    const workspace = await context.workspace();
    const { platform, git } = workspace.surroundings;
    const worktrees = await listWorktrees(platform, git, workspace.repository);
    const leases = await workspace.coordinator.list();
    const held = (id: string | null) => leases.filter(({ lease }) => lease.worktreeId === id).length;
    const rows = worktrees.map((worktree) => [
      worktree.worktreeId ?? "-",
      worktree.branch ?? "(detached)",
      String(held(worktree.worktreeId)),
      `${worktree.root}${worktree.exists ? "" : " (gone)"}${worktree.isMain ? " (main)" : ""}`,
    ]);
    return {
      data: {
        worktrees: worktrees.map((worktree) => ({
          ...worktreeJson(worktree),
          leases: held(worktree.worktreeId),
        })),
      },
      text: columns(context.terminal, ["WORKTREE", "BRANCH", "LEASES", "ROOT"], rows),
    };
  },
};
