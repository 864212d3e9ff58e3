import type { Command } from "../../../cli/grammar/command";
import { leaseTable, statusJson } from "../../../cli/terminal/render";
import { currentBranch } from "../../../identity/branch";
import { printable } from "../../../kernel/ids";
import { accessJson, accessOf, accessText } from "../access";
import { worktreeJson } from "./worktrees";

export const command: Command = {
  usage: "worktree info",
  about: "Shows this worktree's identity and what is leased from it. Writes nothing.",
  flags: {},
  examples: ["cotenant worktree info"],
  words: { min: 0, max: 0 },
  async run(context) {
    const workspace = await context.workspace();
    const { repository, surroundings } = workspace;
    const { identity, standing } = await workspace.worktree("read");
    const branch = await currentBranch(surroundings.platform, surroundings.git, repository.gitDir);
    const leases = (await workspace.coordinator.list()).filter(
      ({ lease }) => lease.worktreeId === identity.worktreeId,
    );
    const access = await accessOf(workspace.coordinator, identity.worktreeId);
    const worktree = worktreeJson({
      ...identity,
      branch,
      isMain: repository.isMainWorktree,
      gitDir: repository.gitDir,
      exists: true,
    });
    const lines = [
      `worktree  ${identity.worktreeId}${standing === "new" ? " (not stored yet)" : ""}`,
      `root      ${repository.worktreeRoot}`,
      `branch    ${branch === null ? "(detached)" : printable(branch)}`,
      `main      ${repository.isMainWorktree ? "yes" : (repository.mainWorktreeRoot ?? "none")}`,
      `control   ${repository.controlDir}`,
      `access    ${accessText(access)}`,
      leases.length === 0 ? "leases    none" : leaseTable(context.terminal, leases, null),
    ];
    return {
      data: {
        worktree: {
          ...worktree,
          ...accessJson(access),
          standing,
          control_directory: repository.controlDir,
          created_at: identity.createdAt,
        },
        leases: leases.map(statusJson),
      },
      text: lines.join("\n"),
    };
  },
};
