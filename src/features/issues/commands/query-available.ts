import type { Command } from "../../../cli/grammar/command";
import { queryAvailable } from "../query";
import { answerOutput, FILTER_FLAGS, filterFrom, heldFiles, openQuery, whereToLook } from "./querying";

export const command: Command = {
  usage:
    "query available [--priority <p>]… [--type <type>]… [--label <ns:value>]… [--free-files] [--limit <n>]",
  about:
    "Lists what can be worked on now: ready, claimed by nobody, waiting for nothing, and not finished in any worktree.\nThe most urgent first, then by type, then the oldest. Also 'cotenant ready'.",
  flags: {
    ...FILTER_FLAGS,
    "free-files": { meaning: "leave out those whose declared files somebody else holds" },
  },
  examples: ["cotenant query available", "cotenant query available --type bug --limit 5 --json"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const filter = filterFrom(parsed);
    const { desk, setting } = await openQuery(context);
    const held = parsed.has("free-files") ? await heldFiles(desk) : null;
    const found = await queryAvailable(setting, filter, held);
    const isEmpty = found.issues.length === 0 && !context.json;
    const look = isEmpty ? await whereToLook(desk, setting, filter, held) : "";
    return answerOutput(context, setting, found, `nothing is available; ${look}`);
  },
};
