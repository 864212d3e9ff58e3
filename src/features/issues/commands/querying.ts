import type { Context, Flag, Output, Parsed } from "../../../cli/grammar/command";
import { usage } from "../../../cli/grammar/parse";
import { columns } from "../../../cli/terminal/render";
import { printable, type Ulid } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import { leftJsonOf } from "../../claims/commands/left-work";
import { workersIn } from "../../ledger/workers";
import { type LeftMap, leftAmong, leftText } from "../../snapshots/left-work";
import type { IssueRow } from "../board";
import { claimantOf, NO_WORKERS } from "../effective";
import { parseLabel } from "../labels";
import { ISSUE_STATES, PRIORITIES } from "../model";
import { type Answer, type Filter, HeldFiles, type QuerySetting, typesOf, whyUnavailable } from "../query";
import { parseState } from "../states";
import { assigneeOf, priorityOf } from "./issue-fields";
import { type Desk, openDesk } from "./issues";

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

/** With where what somebody left is to be found. */
export interface Setting extends QuerySetting {
  /** Of those among the rows that are left work. */
  leftAmong(rows: readonly IssueRow[]): Promise<LeftMap>;
}

/** Everything that queries are answered from. */
export async function openQuery(context: Context): Promise<{ desk: Desk; setting: Setting }> {
  const desk = await openDesk(context);
  return { desk, setting: await settingAt(desk) };
}

export async function settingAt({ reader, workspace }: Desk): Promise<Setting> {
  if (workspace === null)
    return { reader, hierarchy: [], ...NO_WORKERS, leftAmong: async () => new Map<Ulid, never>() };
  const { config } = workspace;
  const workers = await workersIn(workspace);
  return {
    reader,
    hierarchy: config.values["types.hierarchy"],
    ...workers,
    leftAmong: (rows) => leftAmong(workspace, reader, workers, rows),
  };
}

/** What others hold, for `--free-files`. */
export async function heldFiles({ reader, workspace }: Desk): Promise<HeldFiles | null> {
  const { worktreeId } = reader.sources.here;
  if (workspace === null || worktreeId === null) return null;
  return new HeldFiles(await workspace.coordinator.list(), await workspace.actorOrNull(), worktreeId);
}

/** What to look at where nothing is available, by what is so. */
export async function whereToLook(
  { workspace }: Desk,
  setting: QuerySetting,
  filter: Filter,
  held: HeldFiles | null,
): Promise<string> {
  const { isBlocked, isClaimed, isHeld } = await whyUnavailable(setting, filter, held);
  const isShared = (workspace?.config.values["sync.ledger_branch"] ?? null) !== null;
  const ways = [
    ...(isBlocked ? ["'cotenant query blocked' shows what waits for something"] : []),
    ...(isClaimed ? ["'cotenant claim status' shows who works on what"] : []),
    ...(isHeld ? ["'cotenant lock status' shows who holds the files"] : []),
    ...(isShared ? ["'cotenant sync' brings what other machines have"] : []),
  ];
  return ways.length === 0 ? "'cotenant query all' shows what there is" : ways.join("; ");
}

/** An issue as lists have it: without the long texts. */
export function rowJson(issue: IssueRow, claimedBy: string | null, left: LeftMap): Record<string, unknown> {
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
    left: leftJsonOf(left, issue.id),
  };
}

/** A list for people and for programs. `nothing` is said when there is none. */
export async function answerOutput(
  context: Context,
  setting: Setting,
  { issues, broken }: Pick<Answer, "issues" | "broken">,
  nothing: string,
): Promise<Output> {
  const left = await setting.leftAmong(issues);
  const rows = context.json ? issues.map((row) => rowJson(row, claimantOf(setting, row.id), left)) : [];
  const data = { issues: rows, broken };
  return { data, text: context.json ? "" : listText(context, setting, issues, left, broken, nothing) };
}

export function listText(
  context: Context,
  setting: QuerySetting,
  issues: readonly IssueRow[],
  left: LeftMap,
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
  return [
    rows.length === 0 ? nothing : columns(context.terminal, head, rows),
    ...leftLines(issues, left, setting.reader.here.root),
    ...brokenLines(broken),
  ].join("\n");
}

const MOST_LEFT = 20;

/** Below a list: which of it somebody has left, and where. */
export function leftLines(issues: readonly IssueRow[], left: LeftMap, here: string): string[] {
  const found = issues.filter(({ id }) => left.has(id));
  const more = found.length - MOST_LEFT;
  const lines = found
    .slice(0, MOST_LEFT)
    .map(({ id, shortId }) => `${shortId} was ${leftText(left.get(id)!, here)}`);
  return more <= 0 ? lines : [...lines, `and ${more} more were left: --json says by whom`];
}

/** They are never passed over in silence. */
export function brokenLines(broken: Answer["broken"]): string[] {
  if (broken.length <= 20) return broken.map(({ id, why }) => `cannot read ${id}: ${printable(why)}`);
  return [`cannot read ${count(broken.length, "issue")}: 'cotenant doctor' says why`];
}
