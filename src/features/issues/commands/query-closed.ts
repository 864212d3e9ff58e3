import type { Command } from "../../../cli/grammar/command";
import { queryClosed } from "../query";
import { answerOutput, FILTER_FLAGS, filterFrom, openQuery, STATE_FLAG } from "./querying";

export const command: Command = {
  usage:
    "query closed [--state done|rejected|archived]… [--type <type>]… [--label <ns:value>]… [--limit <n>]",
  about: "Lists what is done, rejected or archived, in whichever worktree.",
  flags: { ...STATE_FLAG, ...FILTER_FLAGS },
  examples: ["cotenant query closed", "cotenant query closed --state rejected --limit 20"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const { setting } = await openQuery(context);
    const found = await queryClosed(setting, filterFrom(parsed));
    return answerOutput(context, setting, found, "nothing is closed");
  },
};
