import type { Command } from "../../../cli/grammar/command";
import {
  approveCommand,
  openProposals,
  proposalJson,
  proposalText,
  standingText,
} from "../../../coordinator/proposals";

export const command: Command = {
  usage: "claim proposals",
  about:
    "Lists evictions that wait for the approval of others (policy.approvers), each with the command that agrees to it. One that is\nolder than an hour, or whose lease has ended or changed hands, counts for nothing and is not listed.",
  flags: {},
  examples: ["cotenant claim proposals", "cotenant claim proposals --json"],
  words: { min: 0, max: 0 },
  async run(context) {
    const { coordinator } = await context.workspace();
    const { policy } = coordinator;
    const open = await openProposals(coordinator);
    const lines = open.flatMap((proposal) => [
      `${proposalText(proposal)} (${standingText(proposal, policy)})`,
      `  next: ${approveCommand(proposal)}`,
    ]);
    return {
      data: { proposals: open.map((proposal) => proposalJson(proposal, policy)) },
      text: lines.join("\n") || "no evictions are proposed",
    };
  },
};
