import type { Command } from "../command";
import { HOLDER_FLAGS } from "../holding";
import { claimRef } from "../issues";
import { release } from "../releasing";

export const command: Command = {
  usage: "claim release <issue|lease>",
  about: "Gives a claim back. The issue is free at once.",
  flags: { ...HOLDER_FLAGS, reason: { value: "<text>", meaning: "why; logged" } },
  examples: ["cotenant claim release 7x3k"],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    return release(context, parsed, workspace, [await claimRef(workspace, parsed.words[0]!)]);
  },
};
