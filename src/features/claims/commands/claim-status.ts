import type { Command } from "../../../cli/grammar/command";
import { statusJsonIn } from "../../../cli/terminal/render";
import type { LeaseStatus } from "../../../coordinator/contract";
import type { Workspace } from "../../../coordinator/workspace";
import { orThrow } from "../../../errors/cotenant-error";
import type { LeaseRef } from "../../../kernel/commands";
import { parseAgentId, type Ulid } from "../../../kernel/ids";
import { nameOf } from "../../../kernel/keys";
import { isLandingKey } from "../../../kernel/landing-right";
import { sameParty } from "../../../kernel/lease";
import { claimRef } from "../../issues/commands/issues";
import { issuesIn } from "../../issues/desk";
import { isFound } from "../../issues/resolve";
import { claimsText, elsewhereJson } from "../../ledger/commands/ledger";
import type { ClaimsView } from "../../ledger/view";
import { ledgerView } from "../../ledger/workers";
import { callerOrNull } from "./caller";

function withoutOthers(view: ClaimsView | null): ClaimsView | null {
  return view === null ? null : { ...view, others: new Map() };
}

/** Of the claims of other machines, those that were asked for. */
function onlyFitting(
  view: ClaimsView | null,
  agent: string | null,
  issue: LeaseRef | null,
): ClaimsView | null {
  if (view === null) return null;
  const fits = [...view.others].filter(
    ([id, record]) =>
      (agent === null || record.agentId === agent) &&
      (issue === null || issue.key === `issue:${id}` || issue.leaseId === record.leaseId),
  );
  return { ...view, others: new Map(fits) };
}

/** What the claimed issues are called, as far as they can be read. */
async function titlesOf(
  workspace: Workspace,
  statuses: readonly LeaseStatus[],
): Promise<ReadonlyMap<string, string>> {
  if (statuses.length === 0) return new Map();
  const reader = await issuesIn(workspace);
  const found = await reader.findAll(statuses.map(({ lease }) => nameOf(lease.key) as Ulid));
  return new Map(
    [...found].flatMap(([id, one]) => (isFound(one) ? [[`issue:${id}`, `"${one.issue.title}"`]] : [])),
  );
}

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
      .filter(({ lease }) => lease.key.startsWith("issue:") && !isLandingKey(lease.key))
      .filter(({ lease }) => agent === null || lease.agentId === agent)
      .filter(({ lease }) => issue === null || lease.key === issue.key || lease.leaseId === issue.leaseId)
      .filter(({ lease }) => !parsed.has("mine") || sameParty(lease, me!))
      .sort(
        (a, b) =>
          Number(me !== null && sameParty(b.lease, me)) - Number(me !== null && sameParty(a.lease, me)) ||
          a.lease.fencingToken - b.lease.fencingToken,
      );
    const view = parsed.has("mine")
      ? withoutOthers(await ledgerView(workspace))
      : await ledgerView(workspace);
    const others = onlyFitting(view, agent, issue);
    return {
      data: { leases: statuses.map(statusJsonIn(view)), ...elsewhereJson(others) },
      text: context.json
        ? ""
        : claimsText(context.terminal, statuses, me, others, {
            titles: await titlesOf(workspace, statuses),
            isOwnOnly: parsed.has("mine"),
          }),
    };
  },
};
