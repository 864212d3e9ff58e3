import type { Command } from "../../../cli/grammar/command";
import { labelChange } from "../labels";
import { EDIT_FLAGS, edit } from "./editing";
import { labelsOf } from "./issue-fields";

export const command: Command = {
  usage: "label add <id> <ns:value>…",
  about:
    "Labels an issue that you have claimed. In a namespace of which an issue has one label at most\n(issues.unique_labels), the new one replaces the old one.",
  flags: EDIT_FLAGS,
  examples: ["cotenant label add 7x3k type:bug area:login"],
  words: { min: 2, max: 50 },
  completes: ["issue"],
  async run(context, parsed) {
    const labels = labelsOf(parsed.words.slice(1));
    return edit(
      context,
      parsed,
      parsed.words[0]!,
      async ({ workspace }) => {
        const unique = workspace?.config.values["issues.unique_labels"] ?? ["type"];
        return (current) => {
          const change = labelChange(current.labels, labels, [], unique);
          if (change.add.every((label) => current.labels.includes(label))) return null;
          return {
            labels: change,
            events: [
              {
                type: "label.added",
                payload: { issue_id: current.id, labels: change.add, replaced: change.remove },
              },
            ],
          };
        };
      },
      { done: (found) => `labels: ${found.labels.join(", ")}`, same: "it has them already" },
    );
  },
};
