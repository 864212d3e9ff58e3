import type { Command } from "../../../cli/grammar/command";
import { EDIT_FLAGS, edit } from "./editing";
import { assigned } from "./issue-assign";

export const command: Command = {
  usage: "issue unassign <id>",
  about: "Takes the assignee off an issue that you have claimed.",
  flags: EDIT_FLAGS,
  examples: ["cotenant issue unassign 7x3k"],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  run: (context, parsed) =>
    edit(
      context,
      parsed,
      parsed.words[0]!,
      async () =>
        ({ issue }) =>
          assigned(issue, null),
      {
        done: () => "assigned to nobody",
        same: "it is assigned to nobody already",
      },
    ),
};
