import type { Command } from "../../../cli/grammar/command";
import { CONFIG_CHECKS } from "../checks";
import { validate } from "./validating";

export const command: Command = {
  usage: "validate config",
  about:
    "Checks every source of configuration, as 'cotenant config validate' does, and lists all that is wrong. Writes\nnothing. Exits with 10 when something is.",
  flags: {},
  examples: ["cotenant validate config"],
  words: { min: 0, max: 0 },
  run: (context) => validate(context, CONFIG_CHECKS),
};
