import type { Command } from "../../../cli/grammar/command";
import { printable } from "../../../kernel/ids";
import { pendingText } from "../../gates/commands/output";
import { query, whereToLook } from "../operations/query";
import type { Blocker } from "../query";
import { openDesk } from "./desk";
import { availableFrom, FILTER_FLAGS, FREE_FILES_FLAG, filterFrom, QUERY_FLAGS } from "./flags";
import { linesBelow, listCommand, listedJson } from "./output";

export const all = listCommand({
  about:
    "Lists the issues that stand in this worktree. With any filter it lists those of all worktrees and of HEAD, each\nfrom its newest copy. The most urgent first, then by type, then the oldest.",
  examples: ["cotenant query all", "cotenant query all --state in_progress --priority high --json"],
  find: (desk, parsed) => query.all(desk, filterFrom(parsed)),
  nothing: () => "no issues",
});

export const available = listCommand({
  about:
    "Lists what can be worked on now: ready, claimed by nobody, waiting for nothing, and not finished in any worktree.\nThe most urgent first, then by type, then the oldest. Also 'cotenant ready'.",
  flags: { ...FILTER_FLAGS, ...FREE_FILES_FLAG },
  examples: ["cotenant query available", "cotenant query available --type bug --limit 5 --json"],
  find: (desk, parsed) => query.available(desk, availableFrom(parsed)),
  nothing: async (_, desk, parsed) =>
    `nothing is available; ${await whereToLook(desk, availableFrom(parsed))}`,
});

export const blocked: Command = {
  about:
    "Lists what waits for other issues, and for which: in what state they are, and who has claimed them; and what is done\nbut for its gates, with the command that passes each.",
  flags: QUERY_FLAGS,
  examples: ["cotenant query blocked", "cotenant query blocked --json"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const desk = await openDesk(context);
    const answer = await query.blocked(desk, filterFrom(parsed));
    const { issues, broken, blockers, gates } = answer;
    const items = issues.map((issue) => ({
      ...listedJson(issue, answer),
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
      ...linesBelow(desk, issues, answer),
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

export const strategic = listCommand({
  about: "Lists issues of the types in types.strategic: by default milestones and epics.",
  examples: ["cotenant query strategic", "cotenant query strategic --state in_progress"],
  find: (desk, parsed) => query.strategic(desk, filterFrom(parsed)),
  nothing: ({ types }) => `no issues of type ${types.join(", ")}`,
});

export const closed = listCommand({
  about: "Lists what is done, rejected or archived, in whichever worktree.",
  examples: ["cotenant query closed", "cotenant query closed --state rejected --limit 20"],
  find: (desk, parsed) => query.closed(desk, filterFrom(parsed)),
  nothing: () => "nothing is closed",
});
