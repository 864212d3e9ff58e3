import type { Command } from "../../../cli/grammar/command";
import { DIVERGENCE_CHECKS } from "../checks";
import { validate } from "./validating";

export const command: Command = {
  usage: "validate divergence",
  about:
    "Checks that the current history has the main branch's tip, as changes of configuration, types and gates need\nit. Writes nothing. Exits with 9 when it lacks commits.",
  flags: {},
  examples: ["cotenant validate divergence", "cotenant validate --divergence"],
  words: { min: 0, max: 0 },
  run: (context) => validate(context, DIVERGENCE_CHECKS),
};
