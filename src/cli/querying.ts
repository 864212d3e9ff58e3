import type { IssueRow } from "../issues/board";
import { parseLabel } from "../issues/labels";
import { ISSUE_STATES, PRIORITIES } from "../issues/model";
import {
  type Answer,
  claimsAmong,
  type Elsewhere,
  type Filter,
  HeldFiles,
  type QuerySetting,
  typesOf,
} from "../issues/query";
import { parseState } from "../issues/states";
import { printable, type Ulid } from "../kernel/ids";
import type { ClaimsView } from "../ledger/view";
import { callerOrNull } from "./caller";
import type { Context, Flag, Output, Parsed } from "./command";
import { assigneeOf, priorityOf } from "./issue-fields";
import { type Desk, openDesk } from "./issues";
import { ledgerView } from "./ledger";
import { usage } from "./parse";
import { columns, count } from "./render";

/** What every query can be narrowed by. */
export const FILTER_FLAGS: Readonly<Record<string, Flag>> = {
  priority: {
    value: "<p>",
    many: true,
    choices: PRIORITIES,
    meaning: `only of this priority: ${PRIORITIES.join(", ")}`,
  },
  assignee: { value: "<type:name>", completes: "agent", meaning: "only those of this assignee" },
  label: { value: "<ns:value>", many: true, meaning: "only with this label" },
  type: { value: "<type>", many: true, meaning: "only of this type, as its type: label says" },
  limit: { value: "<n>", meaning: "at most so many" },
};

export const STATE_FLAG: Readonly<Record<string, Flag>> = {
  state: {
    value: "<state>",
    many: true,
    choices: ISSUE_STATES,
    meaning: `only in this state: ${ISSUE_STATES.join(", ")}`,
  },
};

export function filterFrom(parsed: Parsed): Filter {
  const assignee = parsed.text("assignee");
  const limit = parsed.whole("limit") ?? null;
  if (limit === 0) throw usage("--limit takes a number above 0");
  return {
    states: parsed.texts("state").map(parseState),
    priorities: parsed.texts("priority").map(priorityOf),
    types: parsed.texts("type"),
    labels: parsed.texts("label").map(parseLabel),
    assignee: assignee === undefined ? null : assigneeOf(assignee),
    limit,
  };
}

/** Everything that queries are answered from. */
export async function openQuery(context: Context): Promise<{ desk: Desk; setting: QuerySetting }> {
  const desk = await openDesk(context);
  return { desk, setting: await settingAt(desk) };
}

export async function settingAt({ reader, workspace }: Desk): Promise<QuerySetting> {
  const statuses = workspace === null ? [] : await workspace.coordinator.list({ kinds: ["issue"] });
  const hierarchy = workspace?.config.values["types.hierarchy"] ?? [];
  const view = workspace === null ? null : await ledgerView(workspace);
  return { reader, claims: claimsAmong(statuses), hierarchy, elsewhere: elsewhereOf(view) };
}

/** What other machines hold, or have finished, as far as the ledger was heard of. */
function elsewhereOf(view: ClaimsView | null): QuerySetting["elsewhere"] {
  const heard = new Map<Ulid, Elsewhere>();
  for (const [id, { issue }] of view?.over ?? [])
    heard.set(id, { agentId: null, finishedAtVersion: issue?.version ?? 0 });
  for (const [id, { agentId }] of view?.others ?? []) heard.set(id, { agentId, finishedAtVersion: null });
  return heard;
}

/** What others hold, for `--free-files`. */
export async function heldFiles({ reader, workspace }: Desk): Promise<HeldFiles | null> {
  const { worktreeId } = reader.sources.here;
  if (workspace === null || worktreeId === null) return null;
  return new HeldFiles(await workspace.coordinator.list(), await callerOrNull(workspace), worktreeId);
}

/** An issue as lists have it: without the long texts. */
export function rowJson(issue: IssueRow, claimedBy: string | null): Record<string, unknown> {
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
  };
}

/** A list for people and for programs. `nothing` is said when there is none. */
export function answerOutput(
  context: Context,
  setting: Pick<QuerySetting, "claims" | "elsewhere">,
  { issues, broken }: Pick<Answer, "issues" | "broken">,
  nothing: string,
): Output {
  const rows = context.json ? issues.map((row) => rowJson(row, claimantOf(setting, row.id))) : [];
  const data = { issues: rows, broken };
  return { data, text: context.json ? "" : listText(context, setting, issues, broken, nothing) };
}

/** Who has claimed it, here or on another machine. */
export function claimantOf(
  { claims, elsewhere }: Pick<QuerySetting, "claims" | "elsewhere">,
  id: Ulid,
): string | null {
  return claims.get(id)?.lease.agentId ?? elsewhere.get(id)?.agentId ?? null;
}

export function listText(
  context: Context,
  setting: Pick<QuerySetting, "claims" | "elsewhere">,
  issues: readonly IssueRow[],
  broken: Answer["broken"],
  nothing: string,
): string {
  const rows = issues.map((issue) => [
    issue.shortId,
    issue.state,
    issue.priority,
    printable(typesOf(issue.labels).join(","), 20),
    claimantOf(setting, issue.id) ?? "",
    printable(issue.title, 80),
  ]);
  const head = ["ID", "STATE", "PRIORITY", "TYPE", "CLAIMED BY", "TITLE"];
  return [rows.length === 0 ? nothing : columns(context.terminal, head, rows), ...brokenLines(broken)].join(
    "\n",
  );
}

/** They are never passed over in silence. */
export function brokenLines(broken: Answer["broken"]): string[] {
  if (broken.length <= 20) return broken.map(({ id, why }) => `cannot read ${id}: ${printable(why)}`);
  return [`cannot read ${count(broken.length, "issue")}: 'cotenant doctor' says why`];
}
