import type { LeaseStatus } from "../../coordinator/contract";
import { CotenantError } from "../../errors/cotenant-error";
import { ExtentIndex } from "../../kernel/conflicts";
import { printable, type Ulid, type WorktreeId } from "../../kernel/ids";
import { dirKey, fileKey } from "../../kernel/keys";
import { type Lease, sameParty } from "../../kernel/lease";
import { isRefusal } from "../../kernel/refusal";
import { gatesPending, type PendingGate } from "../gates/results";
import { Board, type IssueRow, type Scope } from "./board";
import { claimantOf, isFinishedElsewhere, type Workers } from "./effective";
import { assigneeOf, priorityOf } from "./fields";
import { namespaceOf, parseLabel } from "./labels";
import { ISSUE_STATES, type IssueState, PRIORITIES, type Priority, TERMINAL_STATES } from "./model";
import type { IssueReader } from "./reader";
import { parseState } from "./states";

/** What is asked for: any of the states, of the priorities, of the types; all of the labels. Empty lists: all. */
export interface Filter {
  readonly states: readonly IssueState[];
  readonly priorities: readonly Priority[];
  readonly types: readonly string[];
  readonly labels: readonly string[];
  readonly assignee: string | null;
  readonly limit: number | null;
}

/** The same as somebody asks for it. */
export interface FilterRequest {
  readonly states?: readonly string[];
  readonly priorities?: readonly string[];
  /** As `type:` labels say it. */
  readonly types?: readonly string[];
  readonly labels?: readonly string[];
  readonly assignee?: string | undefined;
  readonly limit?: number | undefined;
}

export function filterOf(request: FilterRequest): Filter {
  const { states = [], priorities = [], types = [], labels = [], assignee, limit } = request;
  if (limit === 0) throw new CotenantError("E_USAGE", "--limit takes a number above 0");
  return {
    states: states.map(parseState),
    priorities: priorities.map(priorityOf),
    types,
    labels: labels.map(parseLabel),
    assignee: assignee === undefined ? null : assigneeOf(assignee),
    limit: limit ?? null,
  };
}

export const ANYTHING: Filter = {
  states: [],
  priorities: [],
  types: [],
  labels: [],
  assignee: null,
  limit: null,
};

/** A limit alone changes nothing about what is asked for. */
export function isFiltered(filter: Filter): boolean {
  return (
    filter.assignee !== null ||
    [filter.states, filter.priorities, filter.types, filter.labels].some((wanted) => wanted.length > 0)
  );
}

/** What queries know besides the issues. */
export interface QuerySetting extends Workers {
  readonly reader: IssueReader;
  /** `types.hierarchy`: the broadest first, those on one line on one level. */
  readonly hierarchy: readonly string[];
}

export interface Answer {
  readonly board: Board;
  /** The most urgent first, then by type, then the oldest. */
  readonly issues: readonly IssueRow[];
  /** Issues that cannot be read. */
  readonly broken: readonly { readonly id: Ulid; readonly why: string }[];
}

/** Why an issue cannot be worked on yet: one thing that it waits for. */
export interface Blocker {
  readonly id: string;
  readonly shortId: string | null;
  /** Null for an issue that nobody has, or that nobody can read. */
  readonly state: IssueState | null;
  readonly title: string | null;
  /** Who has claimed it, here or on another machine. */
  readonly claimedBy: string | null;
}

export async function loadBoard(setting: QuerySetting, scope: Scope): Promise<Board> {
  return Board.load(setting.reader, scope, setting);
}

/** All that the filter lets through. */
export async function queryAll(
  setting: QuerySetting,
  filter: Filter,
  scope: Scope,
  isWanted?: (row: IssueRow) => boolean,
): Promise<Answer> {
  const board = await loadBoard(setting, scope);
  const rows = board.shown(filter.states.length === 0 ? null : filter.states);
  return answerOf(setting, board, rows, filter, isWanted);
}

/** Of the states that are asked for, only those that end something. */
export async function queryClosed(setting: QuerySetting, filter: Filter): Promise<Answer> {
  const states = filter.states.length > 0 ? filter.states : TERMINAL_STATES;
  const board = await loadBoard(setting, "everywhere");
  return answerOf(setting, board, board.shown(states.filter(isTerminalState)), filter);
}

const OPEN_STATES = ISSUE_STATES.filter((state) => !TERMINAL_STATES.includes(state));

function isTerminalState(state: IssueState): boolean {
  return TERMINAL_STATES.includes(state);
}

/**
 * Ready, unclaimed, waiting for nothing, abandoned work among them; with `held`, also none of whose declared files is held
 * by somebody else.
 */
export async function queryAvailable(
  setting: QuerySetting,
  filter: Filter,
  held: HeldFiles | null = null,
): Promise<Answer> {
  const board = await loadBoard(setting, "everywhere");
  const ready = await board.settle(board.shown(["ready"]));
  const candidates = ready.filter(
    (row) =>
      board.state(row) === "ready" &&
      hasPriority(board, row, filter) &&
      !(setting.elsewhere.size > 0 && isFinished(setting, board, row)),
  );
  await board.checkDependencies(candidates);
  const free = candidates.filter((row) => !board.isBlocked(row));
  return answerOf(setting, board, free, filter, (row) => held?.isFree(row.files) ?? true);
}

/** Where nothing is available: what is so of issues that the filter lets through. */
export interface Unavailable {
  /** Some wait for another issue, or for a gate. */
  readonly isBlocked: boolean;
  /** Some are claimed. */
  readonly isClaimed: boolean;
  /** Some would be available, but for their files. */
  readonly isHeld: boolean;
}

export async function whyUnavailable(
  setting: QuerySetting,
  filter: Filter,
  held: HeldFiles | null = null,
): Promise<Unavailable> {
  const one = { ...filter, limit: 1 };
  const isAny = ({ issues }: Answer) => issues.length > 0;
  const isClaimed = ({ id }: IssueRow) => claimantOf(setting, id) !== null;
  return {
    isBlocked: isAny(await queryBlocked(setting, one)),
    isClaimed: isAny(await queryAll(setting, { ...one, states: ["in_progress"] }, "everywhere", isClaimed)),
    isHeld: held !== null && isAny(await queryAvailable(setting, one)),
  };
}

function isFinished(setting: QuerySetting, board: Board, row: number): boolean {
  return isFinishedElsewhere(setting, board.id(row), board.details(row).version);
}

/** What somebody has left, whether or not it waits for something by now. The most urgent first. */
export async function queryAbandoned(setting: QuerySetting): Promise<Answer> {
  const board = await loadBoard(setting, "everywhere");
  const ready = board.shown(["ready"]).filter((row) => board.isAbandoned(row));
  return answerOf(setting, board, ready, ANYTHING, (row) => row.isAbandoned);
}

/** Done but for their gates, the most urgent first, with what each still has to pass. */
export async function queryGated(setting: QuerySetting): Promise<Answer & Pick<Blocked, "gates">> {
  const board = await loadBoard(setting, "everywhere");
  const rows = (await board.settle(board.shown(["gated"]))).filter((row) => board.state(row) === "gated");
  const found = await answerOf(setting, board, rows, ANYTHING);
  return { ...found, gates: await gatesOf(setting, found.issues) };
}

export interface Blocked extends Answer {
  readonly blockers: ReadonlyMap<Ulid, readonly Blocker[]>;
  readonly gates: ReadonlyMap<Ulid, readonly PendingGate[]>;
}

function gatesOf({ reader }: QuerySetting, rows: readonly IssueRow[]): Promise<Blocked["gates"]> {
  const gated = rows.filter(({ state }) => state === "gated");
  return gatesPending(
    reader,
    gated.map(({ id }) => id),
  );
}

/** Whatever waits for something that is not over: another issue, or a gate. */
export async function queryBlocked(setting: QuerySetting, filter: Filter): Promise<Blocked> {
  const board = await loadBoard(setting, "everywhere");
  const open = (await board.settle(board.shown(OPEN_STATES))).filter((row) => !board.isOver(row));
  await board.checkDependencies(open);
  const blocked = open.filter((row) => board.isBlocked(row) || board.state(row) === "gated");
  const found = await answerOf(setting, board, blocked, filter);
  const blockers = new Map<Ulid, readonly Blocker[]>();
  for (const { row, id } of found.issues) blockers.set(id, await blockersOf(setting, board, row));
  return { ...found, blockers, gates: await gatesOf(setting, found.issues) };
}

/** What an issue waits for. Its dependencies must have been looked at. */
async function blockersOf(workers: Workers, board: Board, row: number): Promise<Blocker[]> {
  const named = board.details(row).dependencies;
  const rows = [...board.dependencies(row)];
  await board.settle(rows.filter((needed) => needed !== -1));
  return rows.flatMap((needed, at): Blocker[] => {
    if (board.isOver(needed)) return [];
    const id = named[at] ?? "";
    if (needed === -1) return [{ id, shortId: null, state: null, title: null, claimedBy: null }];
    return [
      {
        id,
        shortId: board.shortId(needed),
        state: board.state(needed),
        title: board.isShown(needed) ? board.details(needed).title : null,
        claimedBy: claimantOf(workers, board.id(needed)),
      },
    ];
  });
}

/** These rows, as far as the filter lets them through, in the order in which they should be done. */
export async function answerOf(
  { hierarchy }: QuerySetting,
  board: Board,
  among: readonly number[],
  filter: Filter,
  isWanted: (row: IssueRow) => boolean = () => true,
): Promise<Answer> {
  const byNumbers = (row: number) =>
    hasPriority(board, row, filter) &&
    (filter.states.length === 0 || filter.states.includes(board.state(row)!));
  await refuseUnknownTypes(hierarchy, board, filter);
  const settled = await board.settle(among.filter(byNumbers));
  const rows = settled.filter(byNumbers);
  await board.checkLabels(rows);
  await board.checkDependencies(rows);
  const rankOf = ranking(hierarchy);
  const hasLabels = remembered((labels) => fits(labels, filter));
  const { assignee } = filter;
  const found = rows
    .filter((row) => hasLabels(board.labels(row)))
    .map((row) => ({ row, priority: board.priority(row), rank: rankOf(board.labels(row)) }));
  // Rows are in the order of ids, which is that of age.
  found.sort((a, b) => b.priority - a.priority || a.rank - b.rank || a.row - b.row);
  const issues: IssueRow[] = [];
  for (const { row } of found) {
    if (issues.length === filter.limit) break;
    const issue = board.details(row);
    if ((assignee === null || issue.assignee === assignee) && isWanted(issue)) issues.push(issue);
  }
  const broken = await board.unreadable();
  await board.save();
  return { board, issues, broken };
}

/**
 * A type is known by the hierarchy, or because some issue has it: a mistyped one would look as if there were none. All
 * labels are looked at only for one that the hierarchy does not have.
 */
async function refuseUnknownTypes(
  hierarchy: readonly string[],
  board: Board,
  { types }: Filter,
): Promise<void> {
  const known = new Set(hierarchy.flatMap((line) => line.split(" ")));
  if (types.every((type) => known.has(type))) return;
  const rows = await board.settle(board.shown());
  await board.checkLabels(rows);
  for (const row of rows) for (const type of typesOf(board.labels(row))) known.add(type);
  const unknown = types.find((type) => !known.has(type));
  if (unknown === undefined) return;
  const names = [...known].sort();
  throw new CotenantError("E_USAGE", `no issue is of type "${printable(unknown, 40)}"`, {
    hint:
      names.length === 0 ? "no issue has a type: label" : `use one of ${printable(names.join(", "), 500)}`,
    data: { type: printable(unknown, 40), known: names.slice(0, 100) },
  });
}

function hasPriority(board: Board, row: number, { priorities }: Filter): boolean {
  return priorities.length === 0 || priorities.includes(PRIORITIES[board.priority(row)]!);
}

function fits(labels: readonly string[], filter: Filter): boolean {
  return (
    filter.labels.every((label) => labels.includes(label)) &&
    (filter.types.length === 0 || typesOf(labels).some((type) => filter.types.includes(type)))
  );
}

/** Many issues have the same labels, in the same array: each set of them is looked at once. */
function remembered<T>(of: (labels: readonly string[]) => T): (labels: readonly string[]) => T {
  const known = new Map<readonly string[], T>();
  return (labels) => {
    let value = known.get(labels);
    if (value === undefined) {
      value = of(labels);
      known.set(labels, value);
    }
    return value;
  };
}

export function typesOf(labels: readonly string[]): string[] {
  return labels.filter((label) => namespaceOf(label) === "type").map((label) => label.slice("type:".length));
}

/** The place of an issue's type in the hierarchy; what has none comes last. */
function ranking(hierarchy: readonly string[]): (labels: readonly string[]) => number {
  const ranks = new Map<string, number>();
  for (const [rank, line] of hierarchy.entries()) for (const type of line.split(" ")) ranks.set(type, rank);
  return remembered((labels) =>
    typesOf(labels).reduce(
      (rank, type) => Math.min(rank, ranks.get(type) ?? hierarchy.length),
      hierarchy.length,
    ),
  );
}

/** Files and directories that others hold. */
export class HeldFiles {
  readonly #held: ExtentIndex<Lease>;
  readonly #worktreeId: WorktreeId;

  /** What `me` holds is in nobody's way. */
  constructor(
    statuses: readonly LeaseStatus[],
    me: Parameters<typeof sameParty>[0] | null,
    worktreeId: WorktreeId,
  ) {
    const others = statuses.filter(({ lease }) => me === null || !sameParty(lease, me));
    this.#held = new ExtentIndex(others.map(({ lease }) => lease));
    this.#worktreeId = worktreeId;
  }

  /** Whether somebody declared a file or a directory cannot be told from its name. */
  isFree(paths: readonly string[]): boolean {
    return !paths.some((path) =>
      [fileKey(path), dirKey(path)].some(
        (key) =>
          !isRefusal(key) &&
          this.#held.conflictsWith({ key, reach: "repository", worktreeId: this.#worktreeId }),
      ),
    );
  }
}
