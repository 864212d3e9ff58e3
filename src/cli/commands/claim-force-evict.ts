import { printable } from "../../kernel/ids";
import type { Command } from "../command";
import { CHANGE_FLAGS, givenReason, requestId } from "../holding";
import { claimRef } from "../issues";
import { leaseJson, leasesData } from "../render";

export const command: Command = {
  usage: "claim force-evict <issue|lease> --reason <text>",
  about:
    "Ends somebody's claim. A live one only by those whom policy.evict allows (people and admins by default).\nThe old holder's next write is refused: its token is stale.",
  flags: { ...CHANGE_FLAGS, reason: { value: "<text>", meaning: "why; logged with your name" } },
  examples: ['cotenant claim force-evict 7x3k --reason "its machine is gone" --agent-id human:ada'],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    const ref = await claimRef(workspace, parsed.words[0]!);
    const options = {
      reason: givenReason(parsed, "ending somebody's lease"),
      requestId: requestId(workspace, parsed),
    };
    const session = await workspace.session("write");
    const { leases, replayed } = await session.evict([ref], options);
    const text = leases.map((l) => `ended the lease of ${l.agentId} on ${printable(l.key)}`).join("\n");
    return {
      data: { ...leasesData(leases.map((l) => leaseJson(l))), replayed },
      text: context.quiet ? "" : text,
    };
  },
};
