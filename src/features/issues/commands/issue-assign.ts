import type { Command } from "../../../cli/grammar/command";
import { EDIT_FLAGS, edit } from "./editing";
import { assigneeOf } from "./issue-fields";

export const command: Command = {
  usage: "issue assign <id> <type:name>",
  about: "Says who should do an issue that you have claimed.",
  flags: EDIT_FLAGS,
  examples: ["cotenant issue assign 7x3k agent:claude-2"],
  words: { min: 2, max: 2 },
  completes: ["issue", "agent"],
  async run(context, parsed) {
    const assignee = assigneeOf(parsed.words[1]!);
    return edit(
      context,
      parsed,
      parsed.words[0]!,
      async () =>
        ({ issue }) =>
          assigned(issue, assignee),
      {
        done: () => `assigned to ${assignee}`,
        same: `it is assigned to ${assignee} already`,
      },
    );
  },
};

export function assigned(issue: { id: string; assignee: string | null }, assignee: string | null) {
  if (issue.assignee === assignee) return null;
  const changes = { assignee: { from: issue.assignee, to: assignee } };
  return {
    fields: { assignee },
    events: [{ type: "issue.updated", payload: { issue_id: issue.id, changes } }],
  } as const;
}
