import type { Command, Output } from "../../../cli/grammar/command";
import { count } from "../../../kernel/printing";
import { answerHook, HOOK_FLAGS, ownWorktreeOf } from "../entry/flags";
import { stopSession } from "../operations";

export const command: Command = {
  about:
    "Says that a session's turn is over. What the guard holds for it ends after guard.stop_idle_secs, unless the session\ngoes on. Harnesses call it; without --harness it is about the caller's own session.",
  flags: HOOK_FLAGS,
  examples: ["cotenant guard stop"],
  words: { min: 0, max: 0 },
  remindsOfExpiry: false,
  mendsConfig: true,
  async run(context, parsed): Promise<Output> {
    if ((await answerHook(context, parsed, "stop")) !== null) return { data: { stopped: null }, text: "" };
    const own = await ownWorktreeOf(context, parsed);
    const stopped = await stopSession(own);
    const { stopIdleSecs } = own.settings.policy;
    const text =
      stopped === 0
        ? "nothing is held"
        : `${count(stopped, "file")} free in ${stopIdleSecs} s, unless you go on`;
    return { data: { stopped }, text };
  },
};
