import type { LeaseStatus } from "../../coordinator/contract";
import { printable } from "../../kernel/ids";
import { sameParty } from "../../kernel/lease";
import { callerOrNull } from "../caller";
import type { Command } from "../command";
import { count, leaseTable, paint, statusJson } from "../render";
import { keysOf, ticketJson } from "./lock-status";

export const command: Command = {
  usage: "status",
  about: "Shows who holds what in this repository, who waits, and what needs a person. Writes nothing.",
  flags: {},
  examples: ["cotenant status", "cotenant status --json"],
  words: { min: 0, max: 0 },
  async run(context) {
    const workspace = await context.workspace();
    const { repository, coordinator } = workspace;
    const me = await callerOrNull(workspace);
    const { identity } = await workspace.worktree("read");
    const all = await coordinator.list({ lapsed: true });
    const leases = all
      .filter(({ standing }) => standing === "valid")
      .sort((a, b) => order(a, me) - order(b, me) || (a.lease.key < b.lease.key ? -1 : 1));
    const waiters = await coordinator.waiters();
    const { head, damage } = await coordinator.snapshot();
    const attention = needsAPerson(leases, damage !== null);
    const lapsed = all.length - leases.length;
    const { terminal } = context;
    const lines = [
      `${repository.worktreeRoot} (${identity.worktreeId})${me === null ? "" : `, as ${me.agentId}`}`,
      leases.length === 0 ? "no leases" : leaseTable(terminal, leases, me),
      ...waiters.map((ticket) => `waiting #${ticket.number}: ${ticket.agentId} for ${keysOf(ticket)}`),
      ...(lapsed === 0 ? [] : [paint(terminal, "dim", `${count(lapsed, "lease")} lapsed and free to take`)]),
      ...attention.map((line) => paint(terminal, "yellow", `! ${line}`)),
      ...(attention.length === 0 ? [paint(terminal, "dim", "nothing needs a person")] : []),
    ];
    return {
      data: {
        repository: { worktree_root: repository.worktreeRoot, control_directory: repository.controlDir },
        agent: me === null ? null : { agent_id: me.agentId, session_id: me.sessionId },
        worktree: { worktree_id: identity.worktreeId },
        leases: leases.map(statusJson),
        lapsed,
        waiters: waiters.map(ticketJson),
        sequence: head.sequence,
        next_token: head.nextToken,
        needs_a_person: attention,
      },
      text: lines.join("\n"),
    };
  },
};

function order({ lease }: LeaseStatus, me: Parameters<typeof sameParty>[0] | null): number {
  return me !== null && sameParty(lease, me) ? 0 : 1;
}

function needsAPerson(leases: readonly LeaseStatus[], damaged: boolean): string[] {
  const found: string[] = [];
  if (damaged) found.push("the log is damaged: run 'cotenant recover'");
  for (const { lease, stale } of leases) {
    if (stale)
      found.push(
        `${printable(lease.key)} is held without expiry by ${lease.agentId}, not heard of since ${new Date(lease.lastBeat.wallMs).toISOString()}`,
      );
  }
  const holders = new Map<string, Set<string>>();
  for (const { lease } of leases) {
    if (lease.bind !== "process") continue;
    const processes = holders.get(lease.agentId) ?? new Set<string>();
    holders.set(
      lease.agentId,
      processes.add(`${lease.holder.bootId}/${lease.holder.pid}/${lease.holder.startTime}`),
    );
  }
  for (const [agent, processes] of holders) {
    if (processes.size > 1)
      found.push(`${agent} is used by ${processes.size} live processes at once: give each its own id`);
  }
  return found;
}
