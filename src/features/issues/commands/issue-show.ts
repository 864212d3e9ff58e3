import type { Command } from "../../../cli/grammar/command";
import { statusJsonIn, timeLeft, untabbed } from "../../../cli/terminal/render";
import type { LeaseStatus } from "../../../coordinator/contract";
import { printable, type Ulid } from "../../../kernel/ids";
import { leftJson } from "../../claims/commands/left-work";
import type { ClaimsView } from "../../ledger/view";
import { ledgerView, workersOn } from "../../ledger/workers";
import { leftOf, leftText } from "../../snapshots/left-work";
import { type Comment, readComments } from "../comments";
import { effective, NO_WORKERS } from "../effective";
import { meant } from "../meant";
import type { IssueReader } from "../reader";
import { type FoundIssue, isFound } from "../resolve";
import { shortId } from "../short-id";
import { issueJson, openDesk } from "./issues";

export const command: Command = {
  usage: "issue show <id>",
  about:
    "Shows one issue from whichever copy is newest: that of whoever has claimed it, this worktree's, the main\none's, or HEAD's.",
  flags: {},
  examples: ["cotenant issue show 7x3k"],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const { reader, workspace } = await openDesk(context);
    const found = await meant(reader, parsed.words[0]!);
    const { id, copy, diverged, ahead } = found;
    const view = workspace === null ? null : await ledgerView(workspace);
    const workers = workspace === null ? NO_WORKERS : await workersOn(workspace, id);
    const claim = workers.claims.get(id) ?? null;
    const left = workspace === null ? null : await leftOf(workspace, reader, workers, found);
    const counted = effective(workers, found);
    const comments = await readComments(reader, found);
    if (ahead !== null)
      workspace?.warnings.push(
        `version ${ahead.version} (${ahead.state}), written by ${ahead.agentId} in ${ahead.worktreeId}, is in no copy that can be seen from here`,
      );
    for (const other of diverged)
      workspace?.warnings.push(
        `${other.root ?? "HEAD"} has another version ${found.issue.stamp.version}: compare the two, and change the issue once more`,
      );
    for (const other of found.broken)
      workspace?.warnings.push(`${other.root ?? "HEAD"} has a copy that cannot be read`);
    const json = issueJson({ ...found, ...counted }, await reader.ids());
    return {
      data: {
        issue: json,
        layer: copy.layer,
        diverged: diverged.map(({ layer, root }) => ({ layer, root })),
        ahead:
          ahead === null
            ? null
            : {
                version: ahead.version,
                state: ahead.state,
                agent_id: ahead.agentId,
                worktree_id: ahead.worktreeId,
              },
        comments: comments.map(({ id: commentId, at, by, text }) => ({ id: commentId, at, by, text })),
        claim: claim === null ? null : statusJsonIn(view)(claim),
        left: left === null ? null : leftJson(left),
      },
      text: lines({ ...found, ...counted }, String(json["short_id"]), comments, {
        claimed: claimText(claim, view, id),
        left: left === null ? null : leftText(left, reader.here.root),
        needs: await needed(reader, found.dependencies),
      }).join("\n"),
    };
  },
};

/** The issues that come before it, each with its title. */
async function needed(reader: IssueReader, dependencies: readonly string[]): Promise<string[]> {
  if (dependencies.length === 0) return [];
  const ids = await reader.ids();
  const found = await reader.findAll(dependencies as readonly Ulid[]);
  return dependencies.map((id) => {
    const one = found.get(id as Ulid);
    return one === undefined || !isFound(one)
      ? `${printable(id, 40)}, which is not here`
      : `${shortId(one.id, ids)}  ${printable(one.issue.title, 120)}`;
  });
}

/** Who has it: here, or as far as the ledger knows on another machine. */
function claimText(claim: LeaseStatus | null, view: ClaimsView | null, id: Ulid): string {
  if (claim !== null) {
    const provisional = view?.standing(claim.lease) === "provisional" ? ", provisional" : "";
    return `by ${claim.lease.agentId} (${claim.lease.worktreeId}), ${timeLeft(claim)}${provisional}`;
  }
  const other = view?.others.get(id);
  return other === undefined ? "by nobody" : `by ${other.agentId} on ${printable(other.host, 60)}`;
}

function lines(
  found: FoundIssue & { readonly assignee: string | null },
  short: string,
  comments: readonly Comment[],
  words: { readonly claimed: string; readonly left: string | null; readonly needs: readonly string[] },
): string[] {
  const { issue, labels, copy, state, assignee } = found;
  const listed = (name: string, values: readonly string[]) =>
    values.length === 0
      ? []
      : [`  ${name.padEnd(9)} ${values.map((value) => printable(value, 120)).join(", ")}`];
  return [
    `${short}  ${printable(issue.title, 300)}`,
    `  id        ${issue.id}`,
    `  state     ${state}, priority ${issue.priority}`,
    ...listed("assignee", assignee === null ? [] : [assignee]),
    ...listed("labels", labels),
    ...words.needs.map((need, i) => `  ${(i === 0 ? "needs" : "").padEnd(9)} ${need}`),
    ...listed("gates", issue.gates),
    ...listed("files", issue.files),
    ...listed(
      "documents",
      issue.documents.map(({ path }) => path),
    ),
    ...listed(
      "context",
      Object.entries(issue.context).map(([name, text]) => `${name}=${text}`),
    ),
    ...listed("because", issue.resolution === null ? [] : [issue.resolution]),
    `  claimed   ${words.claimed}`,
    ...(words.left === null ? [] : [`  it was    ${words.left}`]),
    `  read from ${copy.layer}, version ${issue.stamp.version}`,
    ...(issue.description === "" ? [] : ["", ...indented(issue.description)]),
    ...comments.flatMap(({ at, by, text }) => [
      "",
      `  ${printable(by, 80)}, ${printable(at, 40)}:`,
      ...indented(text),
    ]),
  ];
}

function indented(text: string): string[] {
  return text.split("\n").map((line) => `  ${untabbed(line, 2_000)}`);
}
