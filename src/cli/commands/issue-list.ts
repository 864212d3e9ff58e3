import { ISSUE_STATES, PRIORITIES } from "../../issues/model";
import { type FoundIssue, isFound } from "../../issues/resolve";
import { parseState } from "../../issues/states";
import { printable } from "../../kernel/ids";
import type { Command } from "../command";
import { issueJson, openDesk } from "../issues";
import { columns } from "../render";

export const command: Command = {
  usage: "issue list [--state <state>] [--label <ns:value>]… [--assignee <type:name>]",
  about: "Lists issues of this worktree, the main one and HEAD: the most urgent first, then the oldest.",
  flags: {
    state: { value: "<state>", choices: ISSUE_STATES, meaning: `one of ${ISSUE_STATES.join(", ")}` },
    label: { value: "<ns:value>", many: true, meaning: "only with this label; may be repeated" },
    assignee: { value: "<type:name>", completes: "agent", meaning: "only those of this assignee" },
  },
  examples: ["cotenant issue list", "cotenant issue list --state ready --json"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const state = parsed.text("state");
    const wanted = state === undefined ? null : parseState(state);
    const labels = parsed.texts("label");
    const assignee = parsed.text("assignee");
    const { reader, workspace } = await openDesk(context);
    const ids = await reader.ids();
    const found = [...(await reader.findAll(ids)).values()];
    const broken = found
      .filter((issue) => !isFound(issue))
      .map(({ id, broken: [copy] }) => {
        const reading = copy?.reading;
        return {
          id,
          why: reading !== undefined && "broken" in reading ? reading.broken : "it is another issue's",
        };
      });
    const shown = found
      .filter(isFound)
      .filter(
        (issue) =>
          !issue.isDeleted &&
          (wanted === null || issue.state === wanted) &&
          labels.every((label) => issue.labels.includes(label)) &&
          (assignee === undefined || issue.issue.assignee === assignee),
      )
      .sort(byUrgency);
    const claims = workspace === null ? [] : await workspace.coordinator.list();
    const holders = new Map(claims.map(({ lease }) => [lease.key as string, lease.agentId as string]));
    const holder = (id: string) => holders.get(`issue:${id}`) ?? null;
    const items = shown.map((issue) => ({ ...issueJson(issue, ids), claimed_by: holder(issue.id) }));
    const rows = shown.map(({ id, issue, state: now }, at) => [
      String(items[at]!["short_id" as keyof (typeof items)[number]]),
      now,
      issue.priority,
      holder(id) ?? "",
      printable(issue.title, 80),
    ]);
    const text = [
      rows.length === 0
        ? "no issues"
        : columns(context.terminal, ["ID", "STATE", "PRIORITY", "CLAIMED BY", "TITLE"], rows),
      ...broken.map(({ id, why }) => `cannot read ${id}: ${why}`),
    ].join("\n");
    return { data: { issues: items, broken }, text };
  },
};

function byUrgency(a: FoundIssue, b: FoundIssue): number {
  const urgency = (found: FoundIssue) => PRIORITIES.indexOf(found.issue.priority);
  return urgency(b) - urgency(a) || (a.id < b.id ? -1 : 1);
}
