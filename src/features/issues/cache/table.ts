import { ISSUE_STATES, type IssueReading, PRIORITIES } from "../model";

/** What a place has of an issue. */
export const ABSENT = 0;
/** Its directory, without `issue.json` in it. */
export const EMPTY = 1;
export const WHOLE = 2;
export const BROKEN = 3;

/** Inode, size, and the times of the last change of content and of anything. */
export const STAT_NUMBERS = 4;
/** Files of an issue whose stats are kept, in this order. */
export const STATTED = ["issue.json", "deps.or-set.jsonl", "labels.or-set.jsonl"] as const;
export const ISSUE_FILE = 0;
export const DEPS_FILE = 1;
export const LABELS_FILE = 2;

/** What queries show or search of a copy; all of it is decoded only for rows that somebody looks at. */
export interface CopyText {
  readonly title: string;
  readonly assignee: string | null;
  readonly dependencies: readonly string[];
  readonly files: readonly string[];
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly updatedBy: string;
  /** Why it cannot be read. */
  readonly broken: string | null;
}

/** One copy as it was read. */
export interface CopyEntry {
  readonly kind: number;
  readonly version: number;
  readonly state: number;
  readonly priority: number;
  readonly isDeleted: boolean;
  readonly labels: readonly string[];
  readonly text: CopyText;
}

const NO_TEXT: CopyText = {
  title: "",
  assignee: null,
  dependencies: [],
  files: [],
  createdAt: "",
  updatedAt: "",
  updatedBy: "",
  broken: null,
};

export function brokenEntry(why: string): CopyEntry {
  return {
    kind: BROKEN,
    version: -1,
    state: 0,
    priority: 0,
    isDeleted: false,
    labels: [],
    text: { ...NO_TEXT, broken: why },
  };
}

/** `sets` are what the files beside it add up to. */
export function entryFrom(
  id: string,
  reading: IssueReading,
  sets: { readonly labels: readonly string[]; readonly dependencies: readonly string[] },
): CopyEntry {
  if ("broken" in reading) return brokenEntry(reading.broken);
  const { issue } = reading;
  if (issue.id !== id) return brokenEntry("it is another issue's");
  return {
    kind: WHOLE,
    version: issue.stamp.version,
    state: ISSUE_STATES.indexOf(issue.state),
    priority: PRIORITIES.indexOf(issue.priority),
    isDeleted: issue.deleted_at !== null,
    labels: sets.labels,
    text: {
      title: issue.title,
      assignee: issue.assignee,
      dependencies: sets.dependencies,
      files: issue.files,
      createdAt: issue.created_at,
      updatedAt: issue.updated_at,
      updatedBy: issue.updated_by,
      broken: null,
    },
  };
}

/** The columns of a table as they lie in the cache file. */
export interface Columns {
  readonly kind: Uint8Array;
  readonly state: Uint8Array;
  readonly priority: Uint8Array;
  readonly isDeleted: Uint8Array;
  readonly version: Float64Array;
  /** Of each of `STATTED`, one after the other; empty for what is in Git. */
  readonly stats: Float64Array;
  readonly textStart: Uint32Array;
  readonly text: Uint8Array;
  readonly depStart: Uint32Array;
  /** Row numbers; -1 for an issue that nobody has. */
  readonly deps: Int32Array;
  /** Which of `labelSets` each has: many have the same. */
  readonly labels: Uint32Array;
  readonly labelSets: readonly (readonly string[])[];
}

const NONE = new Int32Array(0);
/** Texts that are decoded one by one before it is worth decoding all of them. */
const MANY_TEXTS = 100;

/** What one place (a worktree, or HEAD) has of every issue: a row for each, the same rows in every table. */
export class Table {
  readonly rows: number;
  readonly columns: Columns;
  readonly #hasStats: boolean;
  /** Rows that were read since the file was made. */
  readonly #freshTexts = new Map<number, CopyText>();
  readonly #freshDeps = new Map<number, Int32Array>();
  readonly #labelSets: (readonly string[])[];
  #labelSetOf: Map<string, number> | null = null;
  #decodings = 0;
  #allText: string | null = null;

  /** `hasStats`: it is of files, not of what is committed. */
  constructor(rows: number, columns: Columns, hasStats: boolean) {
    this.#hasStats = hasStats;
    this.rows = rows;
    this.columns = columns;
    this.#labelSets = [...columns.labelSets];
  }

  static empty(rows: number, hasStats: boolean): Table {
    const columns: Columns = {
      kind: new Uint8Array(rows),
      state: new Uint8Array(rows),
      priority: new Uint8Array(rows),
      isDeleted: new Uint8Array(rows),
      version: new Float64Array(rows).fill(-1),
      stats: new Float64Array(hasStats ? rows * STATTED.length * STAT_NUMBERS : 0).fill(Number.NaN),
      textStart: new Uint32Array(rows + 1),
      text: new Uint8Array(0),
      depStart: new Uint32Array(rows + 1),
      deps: NONE,
      labels: new Uint32Array(rows),
      labelSets: [[]],
    };
    return new Table(rows, columns, hasStats);
  }

  text(row: number): CopyText {
    return this.#freshTexts.get(row) ?? this.#decoded(row);
  }

  /** Decoding all at once costs as much as a hundred rows one by one; where all is ASCII, bytes and characters are at the same places. */
  #decoded(row: number): CopyText {
    const { text, textStart } = this.columns;
    if (this.#decodings++ === MANY_TEXTS) this.#allText = decoder.decode(text);
    if (this.#allText?.length !== text.length) return decodeText(this.textBytes(row));
    return parseText(this.#allText.slice(textStart[row], textStart[row + 1]));
  }

  textBytes(row: number): Uint8Array {
    const fresh = this.#freshTexts.get(row);
    if (fresh !== undefined) return encodeText(fresh);
    const { text, textStart } = this.columns;
    return text.subarray(textStart[row]!, textStart[row + 1]!);
  }

  dependencies(row: number): Int32Array {
    const fresh = this.#freshDeps.get(row);
    if (fresh !== undefined) return fresh;
    const { deps, depStart } = this.columns;
    return deps.subarray(depStart[row]!, depStart[row + 1]!);
  }

  /** The same array for all rows with the same labels. */
  labels(row: number): readonly string[] {
    return this.#labelSets[this.columns.labels[row]!]!;
  }

  setLabels(row: number, labels: readonly string[]): void {
    this.#labelSetOf ??= new Map(this.#labelSets.map((set, at) => [JSON.stringify(set), at]));
    const name = JSON.stringify(labels);
    let at = this.#labelSetOf.get(name);
    if (at === undefined) {
      at = this.#labelSets.push(labels) - 1;
      this.#labelSetOf.set(name, at);
    }
    this.columns.labels[row] = at;
  }

  /** `rowOf` finds the rows of its dependencies. */
  set(row: number, entry: CopyEntry, rowOf: (id: string) => number): void {
    const { kind, state, priority, isDeleted, version } = this.columns;
    kind[row] = entry.kind;
    state[row] = entry.state;
    priority[row] = entry.priority;
    isDeleted[row] = entry.isDeleted ? 1 : 0;
    version[row] = entry.version;
    this.setLabels(row, entry.labels);
    this.setText(row, entry.text, rowOf);
  }

  /** Without what is shown of it: for copies that hardly ever are the newest, and can be read again. */
  setBare(row: number, entry: CopyEntry): void {
    const text = entry.kind === BROKEN ? entry.text : NO_TEXT;
    this.set(row, { ...entry, labels: [], text }, () => -1);
  }

  setText(row: number, text: CopyText, rowOf: (id: string) => number): void {
    this.#freshTexts.set(row, text);
    this.#freshDeps.set(row, Int32Array.from(text.dependencies, rowOf));
  }

  /** Nothing there, or nothing but the directory. */
  clear(row: number, kind: typeof ABSENT | typeof EMPTY): void {
    this.columns.kind[row] = kind;
    this.columns.version[row] = -1;
    this.setLabels(row, []);
    this.#freshTexts.set(row, NO_TEXT);
    this.#freshDeps.set(row, NONE);
  }

  statAt(row: number, file: number): number {
    return (file * this.rows + row) * STAT_NUMBERS;
  }

  /**
   * Which of these rows have a file that is not as it was when it was read, by their places in `rows`. What is not a
   * number is not the same as anything.
   */
  changedAmong(rows: ArrayLike<number>, file: number, seen: Float64Array): number[] {
    const { stats } = this.columns;
    const first = this.statAt(0, file);
    const changed: number[] = [];
    for (let index = 0, at = 0; index < rows.length; index++, at += STAT_NUMBERS) {
      const own = first + rows[index]! * STAT_NUMBERS;
      if (
        stats[own] !== seen[at] ||
        stats[own + 1] !== seen[at + 1] ||
        stats[own + 2] !== seen[at + 2] ||
        stats[own + 3] !== seen[at + 3]
      )
        changed.push(index);
    }
    return changed;
  }

  /** Room for what these look like now, with -1 for those that were not there the last time. */
  statsExpected(rows: ArrayLike<number>, file: number): Float64Array {
    const expected = new Float64Array(rows.length * STAT_NUMBERS);
    for (let index = 0; index < rows.length; index++)
      if (this.columns.stats[this.statAt(rows[index]!, file)] === -1) expected[index * STAT_NUMBERS] = -1;
    return expected;
  }

  setStat(row: number, file: number, seen: Float64Array, at: number): void {
    this.columns.stats.set(seen.subarray(at, at + STAT_NUMBERS), this.statAt(row, file));
  }

  /**
   * The same for other rows: `from[row]` is the row here, or -1. A dependency on an issue that has come since gets
   * its row.
   */
  moved(from: Int32Array, to: Int32Array, rowOf: (id: string) => number): Table {
    const moved = Table.empty(from.length, this.#hasStats);
    const [old, made] = [this.columns, moved.columns];
    const packed = new Packer(from.length);
    for (let row = 0; row < from.length; row++) {
      const was = from[row]!;
      if (was !== -1) {
        made.kind[row] = old.kind[was]!;
        made.state[row] = old.state[was]!;
        made.priority[row] = old.priority[was]!;
        made.isDeleted[row] = old.isDeleted[was]!;
        made.version[row] = old.version[was]!;
        made.labels[row] = old.labels[was]!;
        if (this.#hasStats)
          for (let file = 0; file < STATTED.length; file++)
            moved.setStat(row, file, old.stats, this.statAt(was, file));
      }
      const deps = was === -1 ? NONE : this.#movedDeps(was, to, rowOf);
      packed.add(row, was === -1 ? EMPTY_BYTES : this.textBytes(was), deps);
    }
    const columns = { ...made, ...packed.columns(), labelSets: this.#labelSets };
    return new Table(from.length, columns, this.#hasStats);
  }

  #movedDeps(row: number, to: Int32Array, rowOf: (id: string) => number): Int32Array {
    const deps = this.dependencies(row);
    if (deps.length === 0) return deps;
    if (deps.includes(-1)) return Int32Array.from(this.text(row).dependencies, rowOf);
    const moved = deps.map((dep) => to[dep]!);
    return moved.includes(-1) ? Int32Array.from(this.text(row).dependencies, rowOf) : moved;
  }

  /** Without the sets that nobody has any more. */
  #usedLabels(): Pick<Columns, "labels" | "labelSets"> {
    const fresh = new Map<number, number>([[0, 0]]);
    const labels = this.columns.labels.map((set) => {
      if (!fresh.has(set)) fresh.set(set, fresh.size);
      return fresh.get(set)!;
    });
    return { labels, labelSets: [...fresh.keys()].map((set) => this.#labelSets[set]!) };
  }

  /** With everything that was read since in its place, and stats only of what had settled before `racyFromMs`. */
  packed(racyFromMs: number): Columns {
    const packed = new Packer(this.rows);
    for (let row = 0; row < this.rows; row++) packed.add(row, this.textBytes(row), this.dependencies(row));
    const stats = this.columns.stats.slice();
    for (let at = 0; at < stats.length; at += STAT_NUMBERS)
      if (stats[at + 3]! >= racyFromMs) stats[at] = Number.NaN;
    return { ...this.columns, stats, ...packed.columns(), ...this.#usedLabels() };
  }
}

/** Texts and dependencies of all rows, one after the other. */
class Packer {
  readonly #textStart: Uint32Array;
  readonly #depStart: Uint32Array;
  readonly #texts: Uint8Array[] = [];
  readonly #deps: Int32Array[] = [];
  #textEnd = 0;
  #depEnd = 0;

  constructor(rows: number) {
    this.#textStart = new Uint32Array(rows + 1);
    this.#depStart = new Uint32Array(rows + 1);
  }

  add(row: number, text: Uint8Array, deps: Int32Array): void {
    if (text.length > 0) this.#texts.push(text);
    if (deps.length > 0) this.#deps.push(deps);
    this.#textEnd += text.length;
    this.#depEnd += deps.length;
    this.#textStart[row + 1] = this.#textEnd;
    this.#depStart[row + 1] = this.#depEnd;
  }

  columns(): Pick<Columns, "text" | "textStart" | "deps" | "depStart"> {
    const text = new Uint8Array(this.#textEnd);
    let at = 0;
    for (const part of this.#texts) {
      text.set(part, at);
      at += part.length;
    }
    const deps = new Int32Array(this.#depEnd);
    at = 0;
    for (const part of this.#deps) {
      deps.set(part, at);
      at += part.length;
    }
    return { text, textStart: this.#textStart, deps, depStart: this.#depStart };
  }
}

const EMPTY_BYTES = new Uint8Array(0);
const utf8 = new TextEncoder();
const decoder = new TextDecoder();

function encodeText(text: CopyText): Uint8Array {
  if (text === NO_TEXT) return EMPTY_BYTES;
  const { title, assignee, dependencies, files, createdAt, updatedAt, updatedBy, broken } = text;
  return utf8.encode(
    JSON.stringify([title, assignee, dependencies, files, createdAt, updatedAt, updatedBy, broken]),
  );
}

function decodeText(bytes: Uint8Array): CopyText {
  return bytes.length === 0 ? NO_TEXT : parseText(decoder.decode(bytes));
}

function parseText(text: string): CopyText {
  if (text === "") return NO_TEXT;
  const [title, assignee, dependencies, files, createdAt, updatedAt, updatedBy, broken] = JSON.parse(text);
  return { title, assignee, dependencies, files, createdAt, updatedAt, updatedBy, broken };
}
