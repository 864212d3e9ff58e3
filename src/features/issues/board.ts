import type { Ulid } from "../../kernel/ids";
import type { LiveCatalog } from "./cache/live";
import { BROKEN, DEPS_FILE, LABELS_FILE, WHOLE } from "./cache/table";
import { effectiveAssignee, effectiveState, NO_WORKERS, type Workers } from "./effective";
import {
  decodeIssue,
  ISSUE_STATES,
  type Issue,
  type IssueState,
  PRIORITIES,
  type Priority,
  TERMINAL_STATES,
} from "./model";
import type { IssueReader } from "./reader";
import { type FoundIssue, isFound, type Layer, type UnreadableIssue } from "./resolve";

/** What lists show of an issue. */
export interface IssueRow {
  readonly row: number;
  readonly id: Ulid;
  readonly shortId: string;
  readonly title: string;
  readonly state: IssueState;
  readonly priority: Priority;
  readonly assignee: string | null;
  readonly labels: readonly string[];
  readonly dependencies: readonly string[];
  readonly files: readonly string[];
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly updatedBy: string;
  readonly version: number;
  readonly layer: Layer;
  /** Abandoned: state and assignee are no longer those that are written. */
  readonly isAbandoned: boolean;
}

export interface WholeIssue extends IssueRow {
  readonly issue: Issue;
}

/** `here`: what stands in this worktree, and nothing else. */
export type Scope = "here" | "everywhere";

/** No copy, or none that can be read. */
const NOWHERE = -1;
const UNREADABLE = -2;
const IN_PROGRESS = ISSUE_STATES.indexOf("in_progress");
const TERMINAL = TERMINAL_STATES.map((state) => ISSUE_STATES.indexOf(state));

/**
 * All issues as they stand, a row for each: states and assignees are those that count with the claims of this look. State, priority and deletion are known of every row; the rest is read, and
 * looked after, only for rows that somebody asks about.
 */
export class Board {
  readonly #reader: IssueReader;
  readonly #live: LiveCatalog;
  readonly #layers: readonly Layer[];
  readonly #workers: Workers;
  /** The place with the newest copy. */
  readonly #winner: Int8Array;
  readonly #state: Uint8Array;
  readonly #priority: Uint8Array;
  readonly #isDeleted: Uint8Array;
  readonly #isAbandoned: Uint8Array;
  /** Rows for which what is cached is not all there is: written elsewhere, claimed there, or only committed. */
  readonly #isOdd: Uint8Array;
  /** Rows with something to show, by state, and those with something that cannot be read: found in one go. */
  readonly #inState: number[][] = ISSUE_STATES.map(() => []);
  /** Which of those lists a row counts in: a copy in another worktree may say something else than the cached ones. */
  readonly #countsIn: Int8Array;
  readonly #unreadable: number[] = [];
  readonly #found = new Map<number, FoundIssue | UnreadableIssue>();
  /** Rows whose sets have been looked at, by file. */
  readonly #checked = new Map<number, Uint8Array>();

  private constructor(reader: IssueReader, live: LiveCatalog, scope: Scope, workers: Workers) {
    this.#reader = reader;
    this.#live = live;
    this.#workers = workers;
    const { here, mainRoot } = reader.sources;
    const hasMain = mainRoot !== null && mainRoot !== here.root;
    this.#layers = hasMain ? ["worktree", "main", "HEAD"] : ["worktree", "HEAD"];
    const { rows } = live.catalog;
    this.#winner = new Int8Array(rows).fill(NOWHERE);
    this.#state = new Uint8Array(rows);
    this.#priority = new Uint8Array(rows);
    this.#isDeleted = new Uint8Array(rows);
    this.#isAbandoned = new Uint8Array(rows);
    this.#isOdd = new Uint8Array(rows);
    this.#countsIn = new Int8Array(rows).fill(NOWHERE);
    this.#resolve(scope);
    this.#countClaims();
    if (scope === "here") return;
    for (const [id, { lease }] of workers.claims) {
      const row = lease.worktreeId === here.worktreeId ? -1 : live.catalog.rowOf(id);
      if (row !== -1) this.#isOdd[row] = 1;
    }
  }

  /** `workers`: who has claimed what, and in which worktree. */
  static async load(reader: IssueReader, scope: Scope, workers: Workers = NO_WORKERS): Promise<Board> {
    const live = await reader.live();
    await live.refreshNames(workers.claims.keys());
    await live.refreshIssues();
    const board = new Board(reader, live, scope, workers);
    const held = [...workers.claims.keys()].map((id) => live.catalog.rowOf(id)).filter((row) => row !== -1);
    await board.settle(held);
    return board;
  }

  /** Only rows that claims can make a difference to: those that have one, or had, and those written in progress. */
  #countClaims(): void {
    const { claims, leavers, elsewhere } = this.#workers;
    for (const id of [...claims.keys(), ...leavers.keys(), ...elsewhere.keys()]) {
      const row = this.rowOf(id);
      if (row !== -1 && this.#countsIn[row] !== NOWHERE) this.#count(row);
    }
    for (const row of [...this.#inState[IN_PROGRESS]!]) this.#count(row);
  }

  /** From the written state of a row to the one that counts, and into its list. */
  #count(row: number): void {
    const written = { state: ISSUE_STATES[this.#state[row]!]!, version: this.#version(row) };
    const { state, isAbandoned } = effectiveState(this.#workers, this.id(row), written);
    this.#isAbandoned[row] = isAbandoned ? 1 : 0;
    this.#state[row] = ISSUE_STATES.indexOf(state);
    if (this.#countsIn[row] === this.#state[row]) return;
    this.#countsIn[row] = this.#state[row]!;
    this.#inState[this.#state[row]!]!.push(row);
  }

  #version(row: number): number {
    const found = this.#found.get(row);
    if (found !== undefined && isFound(found)) return found.issue.stamp.version;
    const winner = this.#winner[row]!;
    return winner < 0 ? 0 : this.#live.catalog.places[winner]!.table.columns.version[row]!;
  }

  /** Versions decide, of equal ones the nearest; and above them all, what the control plane remembers. */
  #resolve(scope: Scope): void {
    const { places, stamps, rows } = this.#live.catalog;
    const tables = (scope === "here" ? places.slice(0, 1) : places).map(({ table }) => table.columns);
    const committed = this.#layers.indexOf("HEAD");
    // In variables of its own: this runs once for each of many thousands of rows, before anything has warmed up.
    const [winners, states, priorities] = [this.#winner, this.#state, this.#priority];
    const [deleted, odd, inState, countsIn] = [this.#isDeleted, this.#isOdd, this.#inState, this.#countsIn];
    const hasStamps = scope === "everywhere";
    for (let row = 0; row < rows; row++) {
      let newest = -1;
      let winner = NOWHERE;
      for (let at = 0; at < tables.length; at++) {
        const { kind, version } = tables[at]!;
        if (kind[row] === WHOLE && version[row]! > newest) {
          newest = version[row]!;
          winner = at;
        } else if (kind[row] === BROKEN && winner === NOWHERE) winner = UNREADABLE;
      }
      winners[row] = winner;
      if (winner >= 0) {
        const table = tables[winner]!;
        states[row] = table.state[row]!;
        priorities[row] = table.priority[row]!;
        deleted[row] = table.isDeleted[row]!;
      }
      if (hasStamps && stamps.version[row]! > 0 && stamps.version[row]! > newest) {
        states[row] = stamps.state[row]!;
        deleted[row] = stamps.isDeleted[row]!;
        odd[row] = 1;
      } else if (winner === committed) odd[row] = 1;
      if (winner === UNREADABLE) this.#unreadable.push(row);
      if (winner >= 0 || odd[row] === 1) {
        inState[states[row]!]!.push(row);
        countsIn[row] = states[row]!;
      }
    }
  }

  get rows(): number {
    return this.#live.catalog.rows;
  }

  id(row: number): Ulid {
    return this.#live.catalog.id(row);
  }

  rowOf(id: string): number {
    return this.#live.catalog.rowOf(id);
  }

  shortId(row: number): string {
    return this.#live.catalog.short(row);
  }

  /** Null where nothing is known of it at all. */
  state(row: number): IssueState | null {
    const isKnown = this.#winner[row]! >= 0 || this.#live.catalog.stamps.version[row]! > 0;
    return isKnown ? ISSUE_STATES[this.#state[row]!]! : null;
  }

  isAbandoned(row: number): boolean {
    return this.#isAbandoned[row] === 1;
  }

  isDeleted(row: number): boolean {
    return this.#isDeleted[row] === 1;
  }

  /** Whether there is something to show, as far as can be told without reading anything more. */
  isShown(row: number): boolean {
    return this.#isDeleted[row] === 0 && (this.#winner[row]! >= 0 || this.#isOdd[row] === 1);
  }

  priority(row: number): number {
    return this.#priority[row]!;
  }

  /** Rows with something to show in any of these states, as far as can be told; all states: null. */
  shown(states: readonly IssueState[] | null = null): number[] {
    const wanted = states ?? ISSUE_STATES;
    return ISSUE_STATES.flatMap((state, at) =>
      wanted.includes(state)
        ? this.#inState[at]!.filter((row) => this.#countsIn[row] === at && this.#isDeleted[row] === 0)
        : [],
    );
  }

  /**
   * Reads copies that stand in other worktrees than the cached ones. Answers the rows that still have something to
   * show.
   */
  async settle(rows: readonly number[]): Promise<number[]> {
    const odd = rows.filter((row) => this.#isOdd[row] === 1 && !this.#found.has(row));
    if (odd.length > 0) {
      const inHead = odd.filter((row) => this.#layer(row) === "HEAD");
      const ids = (among: readonly number[]) => among.map((row) => this.id(row));
      const found = await this.#reader.findAll(ids(odd), ids(inHead));
      for (const row of odd) this.#take(row, found.get(this.id(row)) ?? null);
    }
    return rows.filter((row) => this.isShown(row));
  }

  #take(row: number, found: FoundIssue | UnreadableIssue | null): void {
    this.#isOdd[row] = 0;
    if (found === null) return;
    this.#found.set(row, found);
    if (!isFound(found)) {
      if (this.#winner[row] !== UNREADABLE) this.#unreadable.push(row);
      this.#winner[row] = UNREADABLE;
      return;
    }
    this.#winner[row] = 0;
    this.#state[row] = ISSUE_STATES.indexOf(found.state);
    this.#priority[row] = PRIORITIES.indexOf(found.issue.priority);
    this.#isDeleted[row] = found.isDeleted ? 1 : 0;
    this.#count(row);
  }

  /** Looks again at what these depend on. */
  checkDependencies(rows: readonly number[]): Promise<void> {
    return this.#check(rows, DEPS_FILE);
  }

  checkLabels(rows: readonly number[]): Promise<void> {
    return this.#check(rows, LABELS_FILE);
  }

  async #check(rows: readonly number[], file: typeof DEPS_FILE | typeof LABELS_FILE): Promise<void> {
    const checked = this.#checked.get(file) ?? new Uint8Array(this.rows);
    this.#checked.set(file, checked);
    const due = rows.filter((row) => checked[row] === 0 && !this.#found.has(row));
    for (let place = 0; place < this.#layers.length; place++)
      await this.#live.refreshSets(
        place,
        due.filter((row) => this.#winner[row] === place),
        file,
      );
    for (const row of due) checked[row] = 1;
  }

  /** Rows of what it depends on, -1 for what nobody has. */
  dependencies(row: number): Int32Array {
    const found = this.#found.get(row);
    if (found !== undefined)
      return isFound(found) ? Int32Array.from(found.dependencies, (id) => this.rowOf(id)) : NONE;
    const winner = this.#winner[row]!;
    return winner < 0 ? NONE : this.#live.catalog.places[winner]!.table.dependencies(row);
  }

  /** Over and done with, one way or another: nothing has to wait for it. */
  isOver(row: number): boolean {
    if (row === -1) return false;
    if (this.#isDeleted[row] === 1) return true;
    return this.state(row) !== null && TERMINAL.includes(this.#state[row]!);
  }

  isBlocked(row: number): boolean {
    for (const needed of this.dependencies(row)) if (!this.isOver(needed)) return true;
    return false;
  }

  /** The same array for all rows of a place with the same labels. */
  labels(row: number): readonly string[] {
    const found = this.#found.get(row);
    if (found !== undefined) return isFound(found) ? found.labels : [];
    const winner = this.#winner[row]!;
    return winner < 0 ? [] : this.#live.catalog.places[winner]!.table.labels(row);
  }

  /** Of a row that has something to show. */
  details(row: number): IssueRow {
    const found = this.#found.get(row);
    const id = this.id(row);
    const state = ISSUE_STATES[this.#state[row]!]!;
    const isAbandoned = this.#isAbandoned[row] === 1;
    const who = (written: { assignee: string | null; updatedBy: string }) =>
      effectiveAssignee(this.#workers, id, written, { state, isAbandoned });
    const own = { row, id, shortId: this.shortId(row), state, isAbandoned };
    if (found !== undefined && isFound(found)) {
      const { issue, labels, dependencies, copy } = found;
      const { title, files, priority, created_at, updated_at, updated_by } = issue;
      const times = { createdAt: created_at, updatedAt: updated_at, updatedBy: updated_by };
      const seen = { version: issue.stamp.version, layer: copy.layer };
      const assignee = who({ assignee: issue.assignee, updatedBy: updated_by });
      return { ...own, title, assignee, priority, files, labels, dependencies, ...times, ...seen };
    }
    const { table } = this.#live.catalog.places[this.#winner[row]!]!;
    const text = table.text(row);
    // Field by field: there may be many thousands of them.
    return {
      row,
      id,
      shortId: own.shortId,
      title: text.title,
      assignee: who(text),
      labels: table.labels(row),
      dependencies: text.dependencies,
      files: text.files,
      createdAt: text.createdAt,
      updatedAt: text.updatedAt,
      updatedBy: text.updatedBy,
      state,
      priority: PRIORITIES[this.#priority[row]!]!,
      version: table.columns.version[row]!,
      layer: this.#layer(row)!,
      isAbandoned,
    };
  }

  /** Issues of which there is no copy that can be read, and why. */
  async unreadable(): Promise<{ id: Ulid; why: string }[]> {
    await this.settle(this.#unreadable);
    const rows = this.#unreadable.filter(
      (row) => this.#winner[row] === UNREADABLE && this.#isDeleted[row] === 0,
    );
    return rows.map((row) => ({
      id: this.id(row),
      why: this.#whyUnreadable(row),
    }));
  }

  #whyUnreadable(row: number): string {
    for (const { table } of this.#live.catalog.places)
      if (table.columns.kind[row] === BROKEN) return table.text(row).broken ?? "";
    const found = this.#found.get(row);
    const reading = found === undefined || isFound(found) ? undefined : found.broken[0]?.reading;
    return reading !== undefined && "broken" in reading ? reading.broken : "it is another issue's";
  }

  /** Whole issues, for whoever needs more than lists show. What has gone since is left out. */
  async *issues(rows: readonly number[]): AsyncGenerator<WholeIssue> {
    const shown = await this.settle(rows);
    for (const row of shown) {
      const issue = await this.#issue(row);
      if (issue !== null) yield { ...this.details(row), issue };
    }
  }

  async #issue(row: number): Promise<Issue | null> {
    const found = this.#found.get(row);
    if (found !== undefined) return isFound(found) ? found.issue : null;
    const { here, main } = this.#reader;
    const folder = this.#layer(row) === "main" ? main : here;
    const reading = decodeIssue((await folder?.lines(this.id(row), "issue.json")) ?? "");
    return "issue" in reading && reading.issue.id === this.id(row) ? reading.issue : null;
  }

  #layer(row: number): Layer | undefined {
    return this.#layers[this.#winner[row]!];
  }

  /** Keeps what was read for the next command. */
  save(): Promise<void> {
    return this.#live.save();
  }
}

const NONE = new Int32Array(0);
