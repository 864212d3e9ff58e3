import type { Command } from "../../../cli/grammar/command";
import { EDIT_FLAGS, edit } from "../../issues/commands/editing";
import { refuseEnded, withGates } from "../passing";
import { readResults, resetLines } from "../results";
import { definitionOf, gatesAt, refuseTooMany } from "./gates";

export const command: Command = {
  usage: "gate add <issue> <key>…",
  about:
    "Gives an issue that you have claimed gates to pass before it is done. What was said of a gate before it was\ntaken off does not count.",
  flags: EDIT_FLAGS,
  examples: ["cotenant gate add 7x3k tests review"],
  words: { min: 2, max: 50, what: "an issue and a gate" },
  completes: ["issue", "gate"],
  async run(context, parsed) {
    const keys = [...new Set(parsed.words.slice(1))];
    return edit(
      context,
      parsed,
      parsed.words[0]!,
      async (desk) => {
        const { reader, workspace } = desk;
        const { registry } = await gatesAt(desk);
        for (const key of keys) definitionOf(registry, key);
        const by = workspace === null ? "" : (await workspace.agent()).agentId;
        return async (current) => {
          const { id, issue } = current;
          refuseEnded(current);
          const added = keys.filter((key) => !issue.gates.includes(key));
          if (added.length === 0) return null;
          const seen = await readResults(reader, current);
          const resets = resetLines(reader.sources.platform, seen, added, by);
          const gates = [...issue.gates, ...added];
          refuseTooMany(gates);
          const payload = { issue_id: id, gates: added };
          return withGates(current, gates, seen, [{ type: "gate.added", payload }], resets);
        };
      },
      { done: ({ issue }) => `gates: ${issue.gates.join(", ")}`, same: "it has them already" },
    );
  },
};
