import { CotenantError } from "../../errors/cotenant-error";
import { ISSUE_STATES, type Issue, type IssueState, PRIORITIES } from "../../issues/model";
import { printable } from "../../kernel/ids";
import type { Command } from "../command";
import { issueJson, openCatalogue } from "../issues";
import { columns } from "../render";

export const command: Command = {
  usage: "issue list [--state <state>]",
  about: "Lists issues of this worktree, the main one and HEAD: the most urgent first, then the oldest.",
  flags: {
    state: { value: "<state>", choices: ISSUE_STATES, meaning: `one of ${ISSUE_STATES.join(", ")}` },
  },
  examples: ["cotenant issue list", "cotenant issue list --state ready --json"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    // As the seeds spell it, too.
    const wanted = parsed.text("state")?.replaceAll("-", "_");
    if (wanted !== undefined && !ISSUE_STATES.includes(wanted as IssueState)) {
      throw new CotenantError("E_USAGE", `--state cannot be "${printable(wanted)}"`, {
        hint: `use one of ${ISSUE_STATES.join(", ")}`,
      });
    }
    const { catalogue, workspace } = await openCatalogue(context);
    const ids = await catalogue.ids();
    const issues: Issue[] = [];
    const broken: { id: string; why: string }[] = [];
    for (const id of ids) {
      const found = await catalogue.read(id);
      if (found === null) continue;
      if ("issue" in found.reading) issues.push(found.reading.issue);
      else broken.push({ id, why: found.reading.broken });
    }
    const shown = issues.filter((issue) => wanted === undefined || issue.state === wanted).sort(byUrgency);
    const claims = workspace === null ? [] : await workspace.coordinator.list();
    const holder = (id: string) =>
      claims.find(({ lease }) => lease.key === `issue:${id}`)?.lease.agentId ?? null;
    const rows = shown.map((issue) => [
      String(issueJson(issue, ids)["short_id"]),
      issue.state,
      issue.priority,
      holder(issue.id) ?? "",
      printable(issue.title, 80),
    ]);
    const text = [
      rows.length === 0
        ? "no issues"
        : columns(context.terminal, ["ID", "STATE", "PRIORITY", "CLAIMED BY", "TITLE"], rows),
      ...broken.map(({ id, why }) => `cannot read ${id}: ${why}`),
    ].join("\n");
    return {
      data: {
        issues: shown.map((issue) => ({ ...issueJson(issue, ids), claimed_by: holder(issue.id) })),
        broken,
      },
      text,
    };
  },
};

function byUrgency(a: Issue, b: Issue): number {
  return PRIORITIES.indexOf(b.priority) - PRIORITIES.indexOf(a.priority) || (a.id < b.id ? -1 : 1);
}
