import type { Command } from "../../../cli/grammar/command";
import { readResults, resetLines } from "../../gates/results";
import { takenBack } from "../lost";
import { isTerminal } from "../model";
import { EDIT_FLAGS, edit } from "./editing";

export const command: Command = {
  usage: "issue reopen <id> [--reason <text>]",
  about:
    "Brings back an issue that is done, rejected or archived, as ready. It needs a claim like every change:\n'claim acquire --reopen' takes one on an issue that has ended. Its gates have to be passed again.\nOne that was deleted comes back when no branch and no worktree has its deletion any more, and never once a ledger has it.",
  flags: { ...EDIT_FLAGS, reason: { value: "<text>", meaning: "why it is open again" } },
  examples: ['cotenant issue reopen 7x3k --reason "it broke again"'],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const reason = parsed.text("reason") ?? null;
    return edit(
      context,
      parsed,
      parsed.words[0]!,
      async ({ reader, workspace }) => {
        const by = workspace === null ? "" : (await workspace.agent()).agentId;
        return async (current) => {
          const { issue, state, isDeleted } = current;
          if (!isTerminal({ state }) && !isDeleted) return null;
          // What a deletion left of it, where nothing has the deletion any more, is what it was before.
          const open = isTerminal({ state }) || isTerminal(issue) ? "ready" : issue.state;
          const changes = { state: { from: isDeleted ? "deleted" : state, to: open } };
          return {
            fields: { state: open, resolution: null, deleted_at: null },
            // What was passed for the work that was not good enough has to be passed again.
            results: resetLines(reader.sources.platform, await readResults(reader, current), issue.gates, by),
            events: [{ type: "issue.updated", payload: { issue_id: issue.id, changes, reason } }],
          };
        };
      },
      {
        done: ({ issue }) => `${issue.state} again`,
        same: "it is open already",
        options: async ({ reader }, id) => ({ takesBack: (await takenBack(reader, id)).isDeleted }),
      },
    );
  },
};
