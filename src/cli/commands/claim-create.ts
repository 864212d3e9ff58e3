import { ACQUIRE_FLAGS } from "../acquiring";
import type { Command } from "../command";
import { CREATE_FLAGS, createOne } from "./issue-create";

// A new issue is free: there is nothing to wait for, and no earlier call to repeat.
const { wait: _wait, timeout: _timeout, "request-id": _requestId, ...CLAIM_FLAGS } = ACQUIRE_FLAGS;

export const command: Command = {
  usage: "claim create --title <text> [--description <text>] [--priority <p>] [--ttl <secs>]",
  about: "Writes an issue down and claims it: 'issue create' and 'claim acquire' in one.",
  flags: { ...CREATE_FLAGS, ...CLAIM_FLAGS },
  examples: ['cotenant claim create --title "Fix the login" --ttl 600'],
  words: { min: 0, max: 1 },
  run: (context, parsed) => createOne(context, parsed, true),
};
