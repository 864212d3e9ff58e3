import type { Command } from "../../../cli/grammar/command";
import { columns } from "../../../cli/terminal/render";
import { printable } from "../../../kernel/ids";
import { accessJson } from "../access";
import { type Dirt, isDirty, type Surveyed, surveyWorktrees } from "../surveying";
import { worktreeJson } from "./worktrees";

export const command: Command = {
  usage: "worktree list [--quick]",
  about:
    "Lists all worktrees of this repository: who works there and with how many leases, who holds the writer lock, what is\nnot committed, and how far the branch is from its upstream or from the main worktree's branch. Writes nothing.",
  flags: { quick: { meaning: "without asking Git for changes and distances" } },
  examples: ["cotenant worktree list", "cotenant worktree list --quick"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const worktrees = await surveyWorktrees(workspace, { withGit: !parsed.has("quick") });
    const rows = worktrees.map((worktree) => [
      worktree.worktreeId ?? "-",
      worktree.branch === null ? "(detached)" : printable(worktree.branch, 60),
      String(worktree.leases.length),
      agentText(worktree),
      stateText(worktree),
      `${printable(worktree.root, 500)}${worktree.exists ? "" : worktree.isReplaced ? " (gone; something else is there)" : " (gone)"}${worktree.isMain ? " (main)" : ""}`,
    ]);
    return {
      data: { worktrees: worktrees.map(surveyedJson) },
      text: columns(context.terminal, ["WORKTREE", "BRANCH", "LEASES", "AGENT", "STATE", "ROOT"], rows),
    };
  },
};

function agentText({ agents, record, writer }: Surveyed): string {
  const names = agents.map(({ agentId, liveness }) => `${agentId}${liveness === "dead" ? " (dead)" : ""}`);
  if (names.length === 0 && record !== null && record.agentId !== "") names.push(`(${record.agentId})`);
  return `${names.join(", ") || "-"}${writer === null ? "" : " [locked]"}`;
}

function stateText({ state, access, record }: Surveyed): string {
  const parts = access === "shared" ? ["shared, high risk"] : [];
  if (record?.purpose === "landing") parts.push("for checks of the merge queue");
  if (record?.purpose === "dispatch") parts.push("of a dispatch worker");
  if (record?.setup === "failed") parts.push("setup failed");
  if (state === null) return parts.join(", ") || "-";
  parts.push(isDirty(state.dirt) ? dirtText(state.dirt) : "clean");
  if (state.ahead !== null && state.ahead > 0) parts.push(`+${state.ahead}`);
  if (state.behind !== null && state.behind > 0) parts.push(`-${state.behind}`);
  return parts.join(", ");
}

function dirtText({ staged, changed, untracked, conflicts }: Dirt): string {
  return [
    ...(conflicts > 0 ? [`${conflicts} in conflict`] : []),
    ...(staged > 0 ? [`${staged} staged`] : []),
    ...(changed > 0 ? [`${changed} changed`] : []),
    ...(untracked > 0 ? [`${untracked} untracked`] : []),
  ].join(", ");
}

function surveyedJson(worktree: Surveyed): Record<string, unknown> {
  const { state, writer, record } = worktree;
  return {
    ...worktreeJson(worktree),
    leases: worktree.leases.length,
    agents: worktree.agents.map(({ agentId, sessionId, leases, lastBeat, liveness }) => ({
      ...{ agent_id: agentId, session_id: sessionId, leases, last_beat: lastBeat, liveness },
    })),
    agent_id: record?.agentId ?? null,
    issue_id: record?.issueId ?? null,
    setup: record?.setup ?? null,
    purpose: record?.purpose ?? null,
    ...accessJson(worktree.access),
    locked_by: writer?.lease.agentId ?? null,
    dirty: state === null ? null : { ...state.dirt, any: isDirty(state.dirt) },
    ahead: state?.ahead ?? null,
    behind: state?.behind ?? null,
    compared_with: state?.comparedWith ?? null,
  };
}
