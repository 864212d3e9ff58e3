import { wholeIssue } from "../../issues/catalogue";
import { resolveId } from "../../issues/short-id";
import { printable } from "../../kernel/ids";
import type { LeaseKey } from "../../kernel/keys";
import type { Command } from "../command";
import { issueJson, openCatalogue } from "../issues";
import { statusJson, timeLeft } from "../render";
import { byKey } from "../targets";

export const command: Command = {
  usage: "issue show <id>",
  about: "Shows one issue from whichever copy is newest: this worktree's, the main one's, or HEAD's.",
  flags: {},
  examples: ["cotenant issue show 7x3k"],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const { catalogue, workspace } = await openCatalogue(context);
    const ids = await catalogue.ids();
    const id = resolveId(parsed.words[0]!, ids);
    const found = (await catalogue.read(id))!;
    const issue = wholeIssue(found);
    const claims =
      workspace === null ? [] : await workspace.coordinator.find([byKey(`issue:${id}` as LeaseKey)]);
    const claim = claims.find(({ standing }) => standing === "valid") ?? null;
    const json = issueJson(issue, ids);
    const lines = [
      `${json["short_id"]}  ${printable(issue.title, 300)}`,
      `  id        ${issue.id}`,
      `  state     ${issue.state}, priority ${issue.priority}`,
      `  claimed   ${claim === null ? "by nobody" : `by ${claim.lease.agentId} (${claim.lease.worktreeId}), ${timeLeft(claim)}`}`,
      `  read from ${found.layer}, version ${issue.stamp.version}`,
      ...(issue.description === ""
        ? []
        : [
            "",
            issue.description
              .split("\n")
              .map((line) => `  ${printable(line, 2_000)}`)
              .join("\n"),
          ]),
    ];
    return {
      data: { issue: json, layer: found.layer, claim: claim === null ? null : statusJson(claim) },
      text: lines.join("\n"),
    };
  },
};
