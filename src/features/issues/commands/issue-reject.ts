import type { Command } from "../../../cli/grammar/command";
import { givenReason } from "../../locks/commands/holding";
import { stateAfter } from "../states";
import { EDIT_FLAGS, edit } from "./editing";

export const command: Command = {
  usage: "issue reject <id> --reason <text>",
  about: "Closes an issue that you have claimed without doing it. Its gates do not matter then.",
  flags: { ...EDIT_FLAGS, reason: { value: "<text>", meaning: "why it is not done" } },
  examples: ['cotenant issue reject 7x3k --reason "superseded by the new login"'],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const resolution = givenReason(parsed, "rejecting an issue");
    return edit(
      context,
      parsed,
      parsed.words[0]!,
      async () =>
        ({ issue }) => {
          if (issue.state === "rejected" && issue.resolution === resolution) return null;
          const state = stateAfter(issue, "rejected", []);
          const changes = { state: { from: issue.state, to: state } };
          return {
            fields: { state, resolution },
            events: [{ type: "issue.updated", payload: { issue_id: issue.id, changes, reason: resolution } }],
          };
        },
      { done: () => "rejected", same: "it is rejected already" },
    );
  },
};
