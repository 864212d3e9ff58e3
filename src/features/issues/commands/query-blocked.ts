import type { Command } from "../../../cli/grammar/command";
import { printable } from "../../../kernel/ids";
import { pendingText } from "../../gates/commands/gate-words";
import { claimantOf } from "../effective";
import { type Blocker, queryBlocked } from "../query";
import { brokenLines, FILTER_FLAGS, filterFrom, leftLines, openQuery, rowJson, STATE_FLAG } from "./querying";

export const command: Command = {
  usage: "query blocked [--state <state>]… [--priority <p>]… [--type <type>]… [--label <ns:value>]…",
  about:
    "Lists what waits for other issues, and for which: in what state they are, and who has claimed them; and what is done\nbut for its gates, with the command that passes each.",
  flags: { ...STATE_FLAG, ...FILTER_FLAGS },
  examples: ["cotenant query blocked", "cotenant query blocked --json"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const { setting } = await openQuery(context);
    const { issues, broken, blockers, gates } = await queryBlocked(setting, filterFrom(parsed));
    const left = await setting.leftAmong(issues);
    const items = issues.map((issue) => ({
      ...rowJson(issue, claimantOf(setting, issue.id), left),
      blocked_by: (blockers.get(issue.id) ?? []).map(blockerJson),
      gates: (gates.get(issue.id) ?? []).map(({ key }) => key),
    }));
    const lines = issues.flatMap((issue) => [
      `${issue.shortId}  ${issue.state}, ${issue.priority}  ${printable(issue.title, 80)}`,
      ...(blockers.get(issue.id) ?? []).map((blocker) => `  waits for ${blockerText(blocker)}`),
      ...(gates.get(issue.id) ?? []).map((gate) => `  waits for ${pendingText(issue.shortId, gate)}`),
    ]);
    const text = [
      ...(lines.length === 0 ? ["nothing is blocked"] : lines),
      ...leftLines(issues, left, setting.reader.here.root),
      ...brokenLines(broken),
    ];
    return { data: { issues: items, broken }, text: text.join("\n") };
  },
};

function blockerJson({ id, shortId, state, title, claimedBy }: Blocker): Record<string, unknown> {
  return { id, short_id: shortId, state, title, claimed_by: claimedBy };
}

function blockerText({ id, shortId, state, title, claimedBy }: Blocker): string {
  if (shortId === null) return `${printable(id, 40)}, which nobody has`;
  const what = state === null ? "which cannot be read" : state;
  const who = claimedBy === null ? "" : `, claimed by ${claimedBy}`;
  return `${shortId}, ${what}${who}${title === null ? "" : `  ${printable(title, 60)}`}`;
}
