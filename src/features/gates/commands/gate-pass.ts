import type { Command } from "../../../cli/grammar/command";
import { decide, RESULT_FLAGS } from "./gates";

export const command: Command = {
  usage: "gate pass <issue> <key> [--reason <text>]",
  about:
    "Says that a manual gate is passed, for those whom gates.pass_by names: persons, CI and administrators unless it says\notherwise. They need no claim. With the last one, an issue that is gated is done. An automated gate is passed by\n'cotenant gate run' only.",
  flags: RESULT_FLAGS,
  examples: ['cotenant gate pass 7x3k review --reason "read it twice" --agent-id human:me'],
  words: { min: 2, max: 2, what: "an issue and a gate" },
  completes: ["issue", "gate"],
  run: (context, parsed) => decide(context, parsed, "passed"),
};
