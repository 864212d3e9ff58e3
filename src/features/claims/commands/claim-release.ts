import type { Command } from "../../../cli/grammar/command";
import { claimRef } from "../../issues/commands/issues";
import { HOLDER_FLAGS } from "../../locks/commands/holding";
import { putBackClaim, release } from "../../locks/commands/releasing";

export const command: Command = {
  usage: "claim release <issue|lease>",
  about:
    "Gives a claim back. The issue is free at once: if you had written it in progress, it is ready again, and if you had\nassigned it to yourself, it is nobody's.",
  flags: { ...HOLDER_FLAGS, reason: { value: "<text>", meaning: "why; logged" } },
  examples: ["cotenant claim release 7x3k"],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    const ref = await claimRef(workspace, parsed.words[0]!);
    await putBackClaim(parsed, workspace, ref);
    return release(context, parsed, workspace, [ref]);
  },
};
