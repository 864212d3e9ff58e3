import type { Command } from "../../../cli/grammar/command";
import { claimRef } from "../../issues/commands/issues";
import { HOLDER_FLAGS } from "../../locks/commands/holding";
import { RENEW_FLAGS, renew } from "../../locks/commands/renewing";

export const command: Command = {
  usage: "claim renew <issue|lease> [--ttl <secs>]",
  about: "Extends a claim you hold. Never after it has run out, and never past its total lifetime.",
  flags: { ...HOLDER_FLAGS, ...RENEW_FLAGS },
  examples: ["cotenant claim renew 7x3k", "cotenant claim renew 7x3k --ttl 1200"],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    return renew(context, parsed, workspace, [await claimRef(workspace, parsed.words[0]!)]);
  },
};
