import type { Command } from "../../../cli/grammar/command";
import { CONFIG_CHECKS, DIVERGENCE_CHECKS, GATE_CHECKS, ISSUE_CHECKS, LEASE_CHECKS } from "../checks";
import { validate } from "./validating";

export const command: Command = {
  usage: "validate all",
  about:
    "Checks configuration, gates, leases and issues, and that the current history has the main branch's tip. Writes\nnothing. Exits with 13 when data is damaged, with 10 when the configuration is wrong, with 9 when the history lacks\ncommits, with 1 when something has to be cleared up.",
  flags: {},
  examples: ["cotenant validate all", "cotenant validate --all"],
  words: { min: 0, max: 0 },
  run: (context) =>
    validate(context, [
      ...CONFIG_CHECKS,
      ...GATE_CHECKS,
      ...LEASE_CHECKS,
      ...ISSUE_CHECKS,
      ...DIVERGENCE_CHECKS,
    ]),
};
