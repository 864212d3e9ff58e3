import type { Command } from "../../../cli/grammar/command";
import { leaseJson, leasesData } from "../../../cli/terminal/render";
import { forceEvict } from "../../../coordinator/proposals";
import type { Workspace } from "../../../coordinator/workspace";
import type { LeaseRef } from "../../../kernel/commands";
import { printable } from "../../../kernel/ids";
import { keyOfIssue, leaseMeant } from "../../issues/commands/issues";
import { sayJson, tellSay } from "../../ledger/commands/ledger";
import { ledgerView } from "../../ledger/workers";
import { CHANGE_FLAGS, givenReason, requestId } from "../../locks/commands/holding";
import { byKey } from "../../locks/commands/targets";

export const command: Command = {
  usage: "claim force-evict <issue|lease|key> --reason <text>",
  about:
    "Ends somebody's claim, or a lock by its key (file:src/app.ts). A live one only by those whom policy.evict allows (people and admins by default).\nThe old holder's next write is refused: its token is stale. Where policy.approvers asks for the approval of others, it\nonly proposes to end a live one (E_APPROVAL_NEEDED, with the proposal's id), and 'claim approve' ends it.",
  flags: { ...CHANGE_FLAGS, reason: { value: "<text>", meaning: "why; logged with your name" } },
  examples: [
    'cotenant claim force-evict 7x3k --reason "its machine is gone" --agent-id human:ada',
    'cotenant claim force-evict file:src/app.ts --reason "its agent hangs" --agent-id human:ada',
  ],
  isForPeople: true,
  words: { min: 1, max: 1, what: "an issue, a lease or a key such as file:a.txt" },
  completes: ["issue"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    const ref = await evictedRef(workspace, parsed.words[0]!);
    const options = {
      reason: givenReason(parsed, "ending somebody's lease"),
      requestId: requestId(workspace, parsed),
    };
    const session = await workspace.session("write");
    const { coordinator } = workspace;
    const { leases, replayed, ledger } = await forceEvict({ session, coordinator }, [ref], options);
    tellSay(workspace, ledger);
    const elsewhere = (ledger?.endedThere ?? []).filter(
      ({ leaseId }) => !leases.some((lease) => lease.leaseId === leaseId),
    );
    const text = [
      ...leases.map((l) => `ended the lease of ${l.agentId} on ${printable(l.key)}`),
      ...elsewhere.map(
        ({ issueId, agentId, host }) =>
          `ended the claim of ${agentId} on ${printable(host, 60)} to issue:${issueId}; it hears so when it renews, syncs or publishes`,
      ),
    ];
    return {
      data: {
        ...leasesData(leases.map((l) => leaseJson(l))),
        replayed,
        ...sayJson(ledger),
        ...(ledger === undefined
          ? {}
          : {
              ended_elsewhere: elsewhere.map(({ issueId, leaseId, agentId, host }) => ({
                issue_id: issueId,
                lease_id: leaseId,
                agent_id: agentId,
                host,
              })),
            }),
      },
      text: context.quiet ? "" : text.join("\n"),
    };
  },
};

/** Also a claim of another machine on an issue that this one has never seen, by either of its ids. */
async function evictedRef(workspace: Workspace, typed: string): Promise<LeaseRef> {
  const ref = await leaseMeant(workspace, typed, "force-evict");
  if (ref.key !== null) return ref;
  const others = [...((await ledgerView(workspace))?.others.values() ?? [])];
  const claim = others.find(({ issueId, leaseId }) => issueId === ref.leaseId || leaseId === ref.leaseId);
  return claim === undefined ? ref : byKey(keyOfIssue(claim.issueId));
}
