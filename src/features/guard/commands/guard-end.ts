import type { Command, Output } from "../../../cli/grammar/command";
import { count } from "../../../cli/terminal/render";
import { HOOK_FLAGS, harnessPid, hookCall } from "../entry/flags";
import { readHookInput } from "../entry/stdin";
import { worldOf } from "../entry/world-of";
import { endSession, ownWorktree } from "../operations";
import { runHook } from "../run";

export const command: Command = {
  usage: "guard end [--failed] [--harness <name>]",
  about:
    "Gives back everything that the guard holds for a session, because it is over or has failed. Uncommitted work stays\nwhere it is, and whoever gets the file next hears whose it is. Harnesses call it; without --harness it is about the\ncaller's own session.",
  flags: { ...HOOK_FLAGS, failed: { meaning: "it did not end well" } },
  examples: ["cotenant guard end", "cotenant guard end --failed"],
  words: { min: 0, max: 0 },
  remindsOfExpiry: false,
  mendsConfig: true,
  async run(context, parsed): Promise<Output> {
    const call = hookCall(parsed, "end");
    if (call === null) {
      const workspace = await context.workspace();
      const own = await ownWorktree(workspace, worldOf(workspace.surroundings, harnessPid(parsed)));
      const released = await endSession(own, parsed.has("failed") ? "failed" : "ended");
      return {
        data: { released },
        text: released === 0 ? "nothing was held" : `${count(released, "file")} given back`,
      };
    }
    await runHook(worldOf(context.surroundings(), call.harnessPid), call, readHookInput());
    return { data: { released: null }, text: "" };
  },
};
