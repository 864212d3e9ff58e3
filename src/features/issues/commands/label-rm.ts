import type { Command } from "../../../cli/grammar/command";
import { EDIT_FLAGS, edit } from "./editing";

export const command: Command = {
  usage: "label rm <id> <ns:value>…",
  about: "Takes labels off an issue that you have claimed.",
  flags: EDIT_FLAGS,
  examples: ["cotenant label rm 7x3k area:login"],
  words: { min: 2, max: 50 },
  completes: ["issue"],
  async run(context, parsed) {
    const labels = parsed.words.slice(1);
    return edit(
      context,
      parsed,
      parsed.words[0]!,
      async () => (current) => {
        const gone = labels.filter((label) => current.labels.includes(label));
        if (gone.length === 0) return null;
        return {
          labels: { add: [], remove: gone },
          events: [{ type: "label.removed", payload: { issue_id: current.id, labels: gone } }],
        };
      },
      {
        done: (found) => (found.labels.length === 0 ? "no labels" : `labels: ${found.labels.join(", ")}`),
        same: "it has none of them",
      },
    );
  },
};
