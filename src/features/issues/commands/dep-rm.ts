import type { Command } from "../../../cli/grammar/command";
import type { Ulid } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import { meantId } from "../meant";
import { EDIT_FLAGS, edit } from "./editing";

export const command: Command = {
  usage: "dep rm <id> <needs>…",
  about: "Takes dependencies off an issue that you have claimed.",
  flags: EDIT_FLAGS,
  examples: ["cotenant dep rm 7x3k 9k2m"],
  words: { min: 2, max: 50 },
  completes: ["issue", "issue"],
  run: (context, parsed) =>
    edit(
      context,
      parsed,
      parsed.words[0]!,
      async ({ reader }, id) => {
        const needs: Ulid[] = [];
        for (const typed of parsed.words.slice(1)) needs.push(await meantId(reader, typed));
        return (current) => {
          const gone = needs.filter((needed) => current.dependencies.includes(needed));
          if (gone.length === 0) return null;
          return {
            dependencies: { add: [], remove: gone },
            events: gone.map(
              (needed) => ({ type: "dep.removed", payload: { issue_id: id, depends_on: needed } }) as const,
            ),
          };
        };
      },
      {
        done: (found) => `needs ${count(found.dependencies.length, "issue")} before it`,
        same: "it does not need them",
      },
    ),
};
