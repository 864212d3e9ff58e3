import { readFileSync } from "node:fs";
import type { Command } from "../../../cli/grammar/command";
import type { PathChange } from "../../../git/commit-text";
import { givenChanges } from "../changes";
import { answerCommit } from "./commit-answer";
import { asHook } from "./hooking";

export const command: Command = {
  usage: "hook pre-commit",
  about:
    "What Git's pre-commit hook calls: refuses what somebody else holds, and issues changed without a claim.",
  flags: {
    staged: { meaning: "what Git says is staged is on standard input, as the hook's own line puts it there" },
  },
  examples: ["cotenant hook pre-commit"],
  words: { min: 0, max: 10 },
  remindsOfExpiry: false,
  enforcesConfig: true,
  run: (context, parsed) =>
    asHook(context, "pre-commit", (workspace) =>
      answerCommit(workspace, parsed.has("staged") ? staged() : null),
    ),
};

/** Null when it cannot be read, or is not all there: then Git is asked again. */
function staged(): readonly PathChange[] | null {
  try {
    return givenChanges(readFileSync(0));
  } catch {
    return null;
  }
}
