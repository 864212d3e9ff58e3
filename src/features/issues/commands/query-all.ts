import type { Command } from "../../../cli/grammar/command";
import { isFiltered, queryAll } from "../query";
import { answerOutput, FILTER_FLAGS, filterFrom, openQuery, STATE_FLAG } from "./querying";

export const command: Command = {
  usage: "query all [--state <state>]… [--priority <p>]… [--type <type>]… [--label <ns:value>]…",
  about:
    "Lists the issues that stand in this worktree. With any filter it lists those of all worktrees and of HEAD, each\nfrom its newest copy. The most urgent first, then by type, then the oldest.",
  flags: { ...STATE_FLAG, ...FILTER_FLAGS },
  examples: ["cotenant query all", "cotenant query all --state in_progress --priority high --json"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const filter = filterFrom(parsed);
    const { setting } = await openQuery(context);
    const found = await queryAll(setting, filter, isFiltered(filter) ? "everywhere" : "here");
    return answerOutput(context, setting, found, "no issues");
  },
};
