import type { Command, Output } from "../../../cli/grammar/command";
import { count } from "../../../kernel/printing";
import { answerHook, HOOK_FLAGS, ownWorktreeOf } from "../entry/flags";
import { endSession } from "../operations";

export const command: Command = {
  about:
    "Gives back everything that the guard holds for a session, because it is over or has failed. Uncommitted work stays\nwhere it is, and whoever gets the file next hears whose it is. Harnesses call it; without --harness it is about the\ncaller's own session.",
  flags: { ...HOOK_FLAGS, failed: { meaning: "it did not end well" } },
  examples: ["cotenant guard end", "cotenant guard end --failed"],
  words: { min: 0, max: 0 },
  remindsOfExpiry: false,
  mendsConfig: true,
  async run(context, parsed): Promise<Output> {
    if ((await answerHook(context, parsed, "end")) !== null) return { data: { released: null }, text: "" };
    const how = parsed.has("failed") ? "failed" : "ended";
    const released = await endSession(await ownWorktreeOf(context, parsed), how);
    const text = released === 0 ? "nothing was held" : `${count(released, "file")} given back`;
    return { data: { released }, text };
  },
};
