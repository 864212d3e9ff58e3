import type { Command } from "../../../cli/grammar/command";
import { CotenantError } from "../../../errors/cotenant-error";
import type { Ulid } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import { wayTo } from "../cycles";
import { meantId } from "../meant";
import type { IssueReader } from "../reader";
import { isFound } from "../resolve";
import { shortId } from "../short-id";
import { EDIT_FLAGS, edit } from "./editing";

export const command: Command = {
  usage: "dep add <id> <needs>…",
  about:
    "Says that an issue you have claimed can only be done after others. What would close a circle is refused,\nwith the circle.",
  flags: EDIT_FLAGS,
  examples: ["cotenant dep add 7x3k 9k2m"],
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
        for (const needed of needs) await refuseCircle(reader, id, needed);
        return (current) => {
          const fresh = [...new Set(needs)].filter((needed) => !current.dependencies.includes(needed));
          if (fresh.length === 0) return null;
          return {
            dependencies: { add: fresh, remove: [] },
            events: fresh.map(
              (needed) => ({ type: "dep.added", payload: { issue_id: id, depends_on: needed } }) as const,
            ),
          };
        };
      },
      {
        done: (found) => `needs ${count(found.dependencies.length, "issue")} before it`,
        same: "it is said already",
      },
    ),
};

async function refuseCircle(reader: IssueReader, id: Ulid, needed: Ulid): Promise<void> {
  const way = await wayTo(needed, id, async (at) => {
    const found = await reader.find(at as Ulid);
    return isFound(found) ? found.dependencies : [];
  });
  if (way === null) return;
  const ids = await reader.ids();
  const names = [id, ...(way as Ulid[])].map((at) => shortId(at, ids));
  throw new CotenantError("E_CYCLE", `it would close a circle: ${names.join(" → ")}`, {
    data: { cycle: [id, ...way] },
  });
}
