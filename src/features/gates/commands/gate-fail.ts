import type { Command } from "../../../cli/grammar/command";
import { decide, RESULT_FLAGS } from "./gates";

export const command: Command = {
  usage: "gate fail <issue> <key> [--reason <text>]",
  about:
    "Says that a gate is not passed. The issue stays what it is, and cannot be done before somebody says otherwise.\nPersons, CI and administrators need no claim for it; an agent does.",
  flags: RESULT_FLAGS,
  examples: ['cotenant gate fail 7x3k review --reason "no test for the empty list" --agent-id human:me'],
  words: { min: 2, max: 2, what: "an issue and a gate" },
  completes: ["issue", "gate"],
  run: (context, parsed) => decide(context, parsed, "failed"),
};
