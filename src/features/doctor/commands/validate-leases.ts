import type { Command } from "../../../cli/grammar/command";
import { LEASE_CHECKS } from "../checks";
import { validate } from "./validating";

export const command: Command = {
  usage: "validate leases",
  about:
    "Checks the leases and all that they stand on: every line of the log and its archive, the index against the log,\nleases that exclude each other, stale ones, agent ids used twice. Writes nothing. Exits with 13 when data is\ndamaged, with 1 when something has to be cleared up.",
  flags: {},
  examples: ["cotenant validate leases", "cotenant validate --leases --json"],
  words: { min: 0, max: 0 },
  run: (context) => validate(context, LEASE_CHECKS),
};
