import type { Command } from "../../../cli/grammar/command";
import { CLAIM_FLAGS, CREATE_FLAGS, createOne } from "../../issues/commands/issue-create";

export const command: Command = {
  usage: "claim create --title <text> [--description <text>] [--priority <p>] [--ttl <secs>]",
  about:
    "Writes an issue down and claims it: 'issue create' and 'claim acquire' in one. Where the claim is refused there is no\nissue; with --request-id it can be repeated, and makes one.",
  flags: { ...CREATE_FLAGS, ...CLAIM_FLAGS },
  examples: ['cotenant claim create --title "Fix the login" --ttl 600'],
  words: { min: 0, max: 1 },
  run: (context, parsed) => createOne(context, parsed, true),
};
