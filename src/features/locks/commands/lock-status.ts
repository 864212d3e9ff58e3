import type { Command } from "../../../cli/grammar/command";
import { count, leaseTable, statusJson } from "../../../cli/terminal/render";
import type { LeaseStatus } from "../../../coordinator/contract";
import { printable } from "../../../kernel/ids";
import { isInside, isPathKey, pathOf, type RepoPath } from "../../../kernel/keys";
import { isLandingKey } from "../../../kernel/landing-right";
import type { Ticket } from "../../../kernel/tickets";
import { callerOrNull } from "../../claims/commands/caller";
import { pathAsNamed } from "./targets";

export const command: Command = {
  usage: "lock status [--path <prefix>] [--all]",
  about: "Shows who holds which files, directories, resources and refs, who waits, and what looks abandoned.",
  flags: {
    path: { value: "<prefix>", completes: "path", meaning: "only this file or directory, and what is in it" },
    all: { meaning: "also those that have lapsed and that nobody has taken since" },
  },
  examples: ["cotenant lock status", "cotenant lock status --path src/api --json"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const named = parsed.text("path");
    const prefix =
      named === undefined
        ? null
        : (await pathAsNamed(workspace, named, "name a file or a directory: everything in it is shown, too"))
            .path;
    const everything = await workspace.coordinator.list({ lapsed: true });
    const locks = everything.filter(
      ({ lease }) =>
        (!lease.key.startsWith("issue:") || isLandingKey(lease.key)) && isBelow(lease.key, prefix),
    );
    const shown = locks.filter(({ standing }) => standing === "valid" || parsed.has("all"));
    const waiters = await workspace.coordinator.waiters();
    const hints = staleHints(locks);
    const me = await callerOrNull(workspace);
    const text = [
      shown.length === 0 ? "no locks" : leaseTable(context.terminal, shown, me),
      ...waiters.map((ticket) => `  waiting #${ticket.number}: ${ticket.agentId} for ${keysOf(ticket)}`),
      ...hints,
    ].join("\n");
    return { data: { leases: shown.map(statusJson), waiters: waiters.map(ticketJson), hints }, text };
  },
};

/** Whether a lease on the key reaches into the prefix: on it, in it, or on a directory around it. */
export function isBelow(key: LeaseStatus["lease"]["key"], prefix: RepoPath | null): boolean {
  if (prefix === null) return true;
  if (!isPathKey(key)) return false;
  const path = pathOf(key);
  return path === prefix || isInside(path, prefix) || (key.startsWith("dir:") && isInside(prefix, path));
}

function staleHints(statuses: readonly LeaseStatus[]): string[] {
  const lapsed = statuses.filter(({ standing }) => standing !== "valid").length;
  const stale = statuses.filter(({ stale, standing }) => stale && standing === "valid");
  return [
    ...(lapsed === 0
      ? []
      : [
          `${count(lapsed, "lock")} lapsed and free to take; 'cotenant lock gc' logs ${lapsed === 1 ? "its" : "their"} end`,
        ]),
    ...stale.map(
      ({ lease }) =>
        `${printable(lease.key)} has not been heard of since ${new Date(lease.lastBeat.wallMs).toISOString()}: ask ${lease.agentId}`,
    ),
  ];
}

export function ticketJson(ticket: Ticket): Record<string, unknown> {
  return {
    number: ticket.number,
    agent_id: ticket.agentId,
    session_id: ticket.sessionId,
    worktree_id: ticket.worktreeId,
    keys: ticket.keys.map(({ key }) => key),
    joined_at: new Date(ticket.joinedAt.wallMs).toISOString(),
  };
}

export function keysOf(ticket: Ticket): string {
  return ticket.keys.map(({ key }) => printable(key)).join(", ");
}
