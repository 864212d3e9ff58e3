import { type Blocker, queryBlocked } from "../../issues/query";
import { printable } from "../../kernel/ids";
import type { Command } from "../command";
import {
  brokenLines,
  claimantOf,
  FILTER_FLAGS,
  filterFrom,
  openQuery,
  rowJson,
  STATE_FLAG,
} from "../querying";

export const command: Command = {
  usage: "query blocked [--state <state>]… [--priority <p>]… [--type <type>]… [--label <ns:value>]…",
  about:
    "Lists what waits for other issues, and for which: in what state they are, and who has claimed them.",
  flags: { ...STATE_FLAG, ...FILTER_FLAGS },
  examples: ["cotenant query blocked", "cotenant query blocked --json"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const { setting } = await openQuery(context);
    const { issues, broken, blockers } = await queryBlocked(setting, filterFrom(parsed));
    const items = issues.map((issue) => ({
      ...rowJson(issue, claimantOf(setting, issue.id)),
      blocked_by: (blockers.get(issue.id) ?? []).map(blockerJson),
    }));
    const lines = issues.flatMap((issue) => [
      `${issue.shortId}  ${issue.state}, ${issue.priority}  ${printable(issue.title, 80)}`,
      ...(blockers.get(issue.id) ?? []).map((blocker) => `  waits for ${blockerText(blocker)}`),
    ]);
    const text = [...(lines.length === 0 ? ["nothing is blocked"] : lines), ...brokenLines(broken)];
    return { data: { issues: items, broken }, text: text.join("\n") };
  },
};

function blockerJson({ id, shortId, state, title, claim }: Blocker): Record<string, unknown> {
  return { id, short_id: shortId, state, title, claimed_by: claim?.lease.agentId ?? null };
}

function blockerText({ id, shortId, state, title, claim }: Blocker): string {
  if (shortId === null) return `${printable(id, 40)}, which nobody has`;
  const what = state === null ? "which cannot be read" : state;
  const who = claim === null ? "" : `, claimed by ${claim.lease.agentId}`;
  return `${shortId}, ${what}${who}${title === null ? "" : `  ${printable(title, 60)}`}`;
}
