import type { ByteText } from "../../git/byte-text";
import type { ObjectId } from "../../git/object-name";
import { ABSENT, COLUMN, KINDS, ROW, type Trees } from "../../platform/trees";

/**
 * What a working tree looked like, and the objects that hold it. Columns instead of records: there may be hundreds of
 * thousands, and mostly they are only compared.
 */
export interface Picture {
  /** What Git said of its names. */
  readonly listingMark: string;
  readonly paths: readonly ByteText[];
  /** Numbers of each path, as `Trees.lookAll` has them. */
  readonly rows: Float64Array;
  /** Each path's object, or the commit of a repository; empty for what is not part of it. */
  readonly oids: readonly ObjectId[];
  /** Every directory below the root, in the order of their bytes. */
  readonly directories: readonly ByteText[];
  readonly directoryRows: Float64Array;
  /** Each directory's tree; empty for one without files. */
  readonly directoryTrees: readonly ObjectId[];
  readonly tree: ObjectId;
}

export function kindAt(rows: Float64Array, i: number): (typeof KINDS)[number] | null {
  const kind = rows[i * ROW + COLUMN.kind]!;
  return kind === ABSENT ? null : KINDS[kind]!;
}

export function modeAt(rows: Float64Array, i: number): number {
  return rows[i * ROW + COLUMN.mode]!;
}

/** Whether a row is the same in both: nothing happened to the file, not even and back again. */
export function sameRow(a: Float64Array, i: number, b: Float64Array, j: number): boolean {
  for (let column = 0; column < ROW; column++) if (a[i * ROW + column] !== b[j * ROW + column]) return false;
  return true;
}

/** A directory's own times change with names that are no part of a snapshot. */
export function sameDirectory(a: Float64Array, i: number, b: Float64Array, j: number): boolean {
  return (
    a[i * ROW + COLUMN.kind] === b[j * ROW + COLUMN.kind] &&
    a[i * ROW + COLUMN.mode] === b[j * ROW + COLUMN.mode]
  );
}

/** Shorter than any clock's step, so that a change right after the look could bear the same time. */
export const YOUNG_MS = 2_100;

/**
 * What was changed just before it was read may be changed again without a trace: such rows are spoilt, so that they never
 * equal another, and the file is read again the next time.
 */
export function spoilYoung(rows: Float64Array, readAtMs: number, youngMs = YOUNG_MS): void {
  for (let at = 0; at < rows.length; at += ROW) {
    const youngest = Math.max(rows[at + COLUMN.mtimeMs]!, rows[at + COLUMN.ctimeMs]!);
    if (youngest > readAtMs - youngMs) rows[at + COLUMN.ctimeMs] = Number.NaN;
  }
}

/** Every directory that one of the paths is in. */
export function directoriesOf(paths: readonly ByteText[]): ByteText[] {
  const found = new Set<ByteText>();
  let last = "";
  for (const path of paths) {
    const directory = path.slice(0, Math.max(0, path.lastIndexOf("/")));
    if (directory === last) continue;
    last = directory;
    for (let at = directory; at !== "" && !found.has(at); at = at.slice(0, Math.max(0, at.lastIndexOf("/"))))
      found.add(at);
  }
  return [...found];
}

/** Whether a path is as one of the pictures has it; where none has it, whether there is nothing. */
export async function isUnchangedPath(
  trees: Trees,
  root: ByteText,
  path: ByteText,
  ...pictures: readonly Picture[]
): Promise<boolean> {
  const row = new Float64Array(ROW);
  await trees.lookAll(root, [path], row);
  for (const { paths, rows, oids } of pictures) {
    const i = indexIn(paths, path);
    if (i === -1 || oids[i] === "") continue;
    return sameButSpoilt(row, 0, rows, i);
  }
  return kindAt(row, 0) === null || kindAt(row, 0) === "directory";
}

/** Rows of one run: what was spoilt for the next run is still good for this one. */
export function sameButSpoilt(a: Float64Array, i: number, b: Float64Array, j: number): boolean {
  for (let column = 0; column < ROW; column++) {
    const [one, other] = [a[i * ROW + column]!, b[j * ROW + column]!];
    if (one !== other && !(column === COLUMN.ctimeMs && Number.isNaN(other))) return false;
  }
  return true;
}

function indexIn(sorted: readonly ByteText[], path: ByteText): number {
  let [low, high] = [0, sorted.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! === path) return middle;
    if (sorted[middle]! < path) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}
