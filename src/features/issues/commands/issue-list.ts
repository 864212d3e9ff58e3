import type { Command } from "../../../cli/grammar/command";
import { leftJsonOf } from "../../claims/commands/left-work";
import { claimantOf } from "../effective";
import { queryAll } from "../query";
import { issueJson } from "./issues";
import { FILTER_FLAGS, filterFrom, listText, openQuery, STATE_FLAG } from "./querying";

export const command: Command = {
  usage: "issue list [--state <state>]… [--priority <p>]… [--type <type>]… [--label <ns:value>]…",
  about:
    "Lists issues of all worktrees and of HEAD, each from its newest copy: the most urgent first, then by type, then\nthe oldest. With --json, whole.",
  flags: { ...STATE_FLAG, ...FILTER_FLAGS },
  examples: ["cotenant issue list", "cotenant issue list --state ready --json"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const filter = filterFrom(parsed);
    const { setting } = await openQuery(context);
    const { board, issues, broken } = await queryAll(setting, filter, "everywhere");
    const left = await setting.leftAmong(issues);
    if (!context.json)
      return { data: {}, text: listText(context, setting, issues, left, broken, "no issues") };
    const items: Record<string, unknown>[] = [];
    for await (const { issue, id, shortId, ...row } of board.issues(issues.map(({ row }) => row)))
      items.push({
        ...issueJson({ ...row, issue }, shortId),
        claimed_by: claimantOf(setting, id),
        left: leftJsonOf(left, id),
      });
    return { data: { issues: items, broken }, text: "" };
  },
};
