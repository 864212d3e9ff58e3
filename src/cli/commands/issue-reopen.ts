import { readResults, resetLines } from "../../issues/gates/results";
import { isTerminal } from "../../issues/model";
import type { Command } from "../command";
import { EDIT_FLAGS, edit } from "../editing";

export const command: Command = {
  usage: "issue reopen <id> [--reason <text>]",
  about:
    "Brings back an issue that is done, rejected or archived, as ready. It needs a claim like every change:\n'claim acquire --reopen' takes one on an issue that has ended. Its gates have to be passed again.",
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
          const { issue, state } = current;
          if (!isTerminal({ state })) return null;
          const changes = { state: { from: state, to: "ready" } };
          return {
            fields: { state: "ready", resolution: null },
            // What was passed for the work that was not good enough has to be passed again.
            results: resetLines(reader.sources.platform, await readResults(reader, current), issue.gates, by),
            events: [{ type: "issue.updated", payload: { issue_id: issue.id, changes, reason } }],
          };
        };
      },
      { done: () => "ready again", same: "it is open already" },
    );
  },
};
