import { orThrow } from "../../errors/cotenant-error";
import { parseAgentId } from "../../kernel/ids";
import { sameParty } from "../../kernel/lease";
import { callerOrNull } from "../caller";
import type { Command } from "../command";
import { claimRef } from "../issues";
import { leaseTable, statusJson } from "../render";

export const command: Command = {
  usage: "claim status [--mine] [--issue <id>] [--agent <id>]",
  about: "Shows all claims, yours first (marked *).",
  flags: {
    mine: { meaning: "only those of this agent, session and worktree" },
    issue: { value: "<id>", completes: "issue", meaning: "only this issue's" },
    agent: { value: "<type:name>", completes: "agent", meaning: "only this agent's" },
  },
  examples: ["cotenant claim status", "cotenant claim status --mine --json"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const agent = parsed.text("agent") === undefined ? null : orThrow(parseAgentId(parsed.text("agent")!));
    const issue =
      parsed.text("issue") === undefined ? null : await claimRef(workspace, parsed.text("issue")!);
    const me = parsed.has("mine") ? (await workspace.session("read")).actor : await callerOrNull(workspace);
    const statuses = (await workspace.coordinator.list())
      .filter(({ lease }) => lease.key.startsWith("issue:"))
      .filter(({ lease }) => agent === null || lease.agentId === agent)
      .filter(({ lease }) => issue === null || lease.key === issue.key || lease.leaseId === issue.leaseId)
      .filter(({ lease }) => !parsed.has("mine") || sameParty(lease, me!))
      .sort(
        (a, b) =>
          Number(me !== null && sameParty(b.lease, me)) - Number(me !== null && sameParty(a.lease, me)) ||
          a.lease.fencingToken - b.lease.fencingToken,
      );
    const text = statuses.length === 0 ? "no claims" : leaseTable(context.terminal, statuses, me);
    return { data: { leases: statuses.map(statusJson) }, text };
  },
};
