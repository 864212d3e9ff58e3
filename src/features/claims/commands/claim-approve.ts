import type { Command } from "../../../cli/grammar/command";
import { leaseJson, leasesData } from "../../../cli/terminal/render";
import {
  approveEviction,
  meantProposal,
  missingText,
  noOpenProposal,
  proposalJson,
} from "../../../coordinator/proposals";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import { parseUlid, printable, type Ulid } from "../../../kernel/ids";
import { isRefusal } from "../../../kernel/refusal";
import { leaseMeant } from "../../issues/commands/issues";
import { sayJson, tellSay } from "../../ledger/commands/ledger";

export const command: Command = {
  usage: "claim approve <proposal|issue|lease>",
  about:
    "Agrees to end somebody's live lease, as 'claim force-evict' has proposed it where policy.approvers asks for the approval\nof others. Never by whoever proposed it, and only by those whom policy.evict allows. The last approval that is needed ends\nthe lease, for the reason of the proposal.",
  flags: {},
  examples: ["cotenant claim approve 7x3k --agent-id human:bob"],
  isForPeople: true,
  words: { min: 1, max: 1, what: "a proposal, an issue or a lease" },
  completes: ["issue"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    const { coordinator } = workspace;
    const id = await proposalId(workspace, parsed.words[0]!);
    const session = await workspace.session("write");
    const { proposal, missing, change, wasAgreed } = await approveEviction({ session, coordinator }, id);
    tellSay(workspace, change?.ledger);
    const { agentId, key } = proposal.subject;
    const text =
      change === null
        ? `${wasAgreed ? "you have agreed already" : "agreed"}; nothing has ended yet: ${missingText(missing)}`
        : `agreed, and ended the lease of ${agentId} on ${printable(key)}`;
    return {
      data: {
        proposal: proposalJson(proposal, coordinator.policy),
        evicted: change !== null,
        ...leasesData((change?.leases ?? []).map((lease) => leaseJson(lease))),
        ...sayJson(change?.ledger),
      },
      text: context.quiet ? "" : text,
    };
  },
};

async function proposalId(workspace: Workspace, typed: string): Promise<Ulid> {
  const id = parseUlid(typed);
  const ref = await leaseMeant(workspace, typed, "approve").catch((error: unknown) => {
    const isNobodys = error instanceof CotenantError && error.code === "E_NOT_FOUND";
    throw isNobodys ? noOpenProposal(typed) : error;
  });
  return meantProposal(workspace.coordinator, isRefusal(id) ? null : id, ref);
}
