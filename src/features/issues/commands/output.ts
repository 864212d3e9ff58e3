import type { Command, Context, Output, Parsed } from "../../../cli/grammar/command";
import { columns } from "../../../cli/terminal/render";
import { printable } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import { abandonedJson } from "../../claims/commands/abandoned-work";
import { HOLDER_FLAGS, holderFrom } from "../../locks/commands/flags";
import type { AbandonedMap, AbandonedWork } from "../../snapshots/abandoned-work";
import { abandonedText } from "../../snapshots/abandoned-work";
import type { IssueRow } from "../board";
import type { Desk } from "../desk";
import { claimantOf } from "../effective";
import type { ChangedIssue, IssueRequest } from "../operations/issue-change";
import type { Listed } from "../operations/query";
import { type Answer, typesOf } from "../query";
import type { FoundIssue } from "../resolve";
import { openDesk } from "./desk";
import { QUERY_FLAGS } from "./flags";

/** One that changes an issue, named by its first word, which the caller has claimed. */
export interface ChangeCommand
  extends Pick<Command, "positional" | "usage" | "about" | "examples">,
    Partial<Pick<Command, "words" | "completes" | "flags">> {
  change(desk: Desk, request: IssueRequest, parsed: Parsed): Promise<ChangedIssue>;
  done(changed: ChangedIssue, parsed: Parsed): string;
  /** What is said where nothing had to be changed. */
  same(parsed: Parsed): string;
}

export function changeCommand({ change, done, same, flags, ...command }: ChangeCommand): Command {
  return {
    words: { min: 1, max: 1 },
    completes: ["issue"],
    ...command,
    flags: { ...HOLDER_FLAGS, ...flags },
    async run(context, parsed) {
      const desk = await openDesk(context);
      const changed = await change(desk, issueFrom(parsed, desk), parsed);
      return changeOutput(context, changed, changed.changed ? done(changed, parsed) : same(parsed));
    },
  };
}

/** The issue that is named first, and what proves the claim on it. */
export function issueFrom(parsed: Parsed, { workspace }: Desk): IssueRequest {
  return { ...(workspace === null ? {} : holderFrom(parsed, workspace)), issue: parsed.words[0]! };
}

/** What a change of an issue came to. */
export function changeOutput({ quiet }: Context, changed: ChangedIssue, said: string): Output {
  const { found, shortId, isReleased, replayed } = changed;
  const more = isReleased ? ", and its claim is given back" : "";
  return {
    data: { issue: issueJson(found, shortId), changed: changed.changed, replayed },
    text: quiet ? "" : `${shortId}: ${said}${more}\n  ${printable(found.issue.title)}`,
  };
}

/** `state` and `assignee`: those that count, where they are shown; those that were written, where that is the answer. */
export function issueJson(
  {
    issue,
    labels,
    dependencies,
    state = issue.state,
    assignee = issue.assignee,
  }: Pick<FoundIssue, "issue" | "labels" | "dependencies"> &
    Partial<Pick<FoundIssue, "state">> & { readonly assignee?: string | null },
  shortId: string,
): Record<string, unknown> {
  const { extra: _, ...fields } = issue;
  return { ...fields, state, assignee, labels, dependencies, short_id: shortId };
}

export interface ListCommand<A extends Listed>
  extends Pick<Command, "positional" | "usage" | "about" | "examples">,
    Partial<Pick<Command, "flags">> {
  find(desk: Desk, parsed: Parsed): Promise<A>;
  /** What is said when there is none. */
  nothing(answer: A, desk: Desk, parsed: Parsed): string | Promise<string>;
}

export function listCommand<A extends Listed>({ find, nothing, ...command }: ListCommand<A>): Command {
  return {
    flags: QUERY_FLAGS,
    words: { min: 0, max: 0 },
    ...command,
    async run(context, parsed) {
      const desk = await openDesk(context);
      const answer = await find(desk, parsed);
      const { issues, broken } = answer;
      if (context.json)
        return { data: { issues: issues.map((row) => listedJson(row, answer)), broken }, text: "" };
      const none = issues.length > 0 ? "" : await nothing(answer, desk, parsed);
      return { data: {}, text: listText(context, desk, answer, none) };
    },
  };
}

export function listedJson(
  issue: IssueRow,
  { workers, abandoned }: Pick<Listed, "workers" | "abandoned">,
): Record<string, unknown> {
  return rowJson(issue, claimantOf(workers, issue.id), abandoned.get(issue.id));
}

/** An issue as lists have it: without the long texts. */
export function rowJson(
  issue: IssueRow,
  claimedBy: string | null,
  abandoned: AbandonedWork | null | undefined,
): Record<string, unknown> {
  return {
    id: issue.id,
    short_id: issue.shortId,
    title: issue.title,
    state: issue.state,
    priority: issue.priority,
    assignee: issue.assignee,
    labels: issue.labels,
    dependencies: issue.dependencies,
    files: issue.files,
    created_at: issue.createdAt,
    updated_at: issue.updatedAt,
    updated_by: issue.updatedBy,
    version: issue.version,
    layer: issue.layer,
    claimed_by: claimedBy,
    left: abandonedJson(abandoned),
  };
}

export function listText({ terminal }: Context, desk: Desk, answer: Listed, nothing: string): string {
  const { issues, workers } = answer;
  const rows = issues.map((issue) => [
    issue.shortId,
    issue.state,
    issue.priority,
    printable(typesOf(issue.labels).join(","), 20),
    claimantOf(workers, issue.id) ?? "",
    printable(issue.title, 80),
  ]);
  const head = ["ID", "STATE", "PRIORITY", "TYPE", "CLAIMED BY", "TITLE"];
  return [
    rows.length === 0 ? nothing : columns(terminal, head, rows),
    ...linesBelow(desk, issues, answer),
  ].join("\n");
}

/** Below a list: which of it somebody has left, and where, and what cannot be read. */
export function linesBelow(
  { reader }: Desk,
  issues: readonly IssueRow[],
  { abandoned, broken }: Pick<Listed, "abandoned" | "broken">,
): string[] {
  return [...abandonedLines(issues, abandoned, reader.here.root), ...brokenLines(broken)];
}

const MOST_ABANDONED = 20;

function abandonedLines(issues: readonly IssueRow[], abandoned: AbandonedMap, here: string): string[] {
  const found = issues.filter(({ id }) => abandoned.has(id));
  const more = found.length - MOST_ABANDONED;
  const lines = found
    .slice(0, MOST_ABANDONED)
    .map(({ id, shortId }) => `${shortId} was ${abandonedText(abandoned.get(id)!, here)}`);
  return more <= 0 ? lines : [...lines, `and ${more} more were left: --json says by whom`];
}

/** They are never passed over in silence. */
function brokenLines(broken: Answer["broken"]): string[] {
  if (broken.length <= 20) return broken.map(({ id, why }) => `cannot read ${id}: ${printable(why)}`);
  return [`cannot read ${count(broken.length, "issue")}: 'cotenant doctor' says why`];
}
