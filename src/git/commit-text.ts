import type { ObjectId, ObjectType } from "./object-name";

/** A commit as its object says it, whoever wrote it. */
export interface ReadCommit {
  readonly oid: ObjectId;
  readonly tree: ObjectId;
  readonly parents: readonly ObjectId[];
  /** 0 where the commit has none that can be read. */
  readonly authoredAtMs: number;
  readonly committedAtMs: number;
  /** All of it: nothing in it is looked for here. */
  readonly message: string;
}

/** One path that differs between two trees. */
export interface PathChange {
  readonly path: string;
  readonly status: "added" | "changed" | "deleted";
  /** Of the new content; null where it is deleted. */
  readonly oid: ObjectId | null;
  /** Of the old content; null where it is added. */
  readonly before: ObjectId | null;
  /** Git's six digits for the new content; null where it is deleted. */
  readonly mode: string | null;
}

/** The mode of a file that is neither a link nor a program. */
export const PLAIN_FILE = "100644";

export type TreePair = readonly [from: ObjectId, to: ObjectId];

const ZERO = /^0+$/;

/** Null where it is no commit. What comes after the tree and the parents may be anything. */
export function readCommit(oid: ObjectId, content: Uint8Array): ReadCommit | null {
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(content);
  const end = text.indexOf("\n\n");
  const head = (end === -1 ? text : text.slice(0, end)).split("\n");
  const tree = /^tree ([0-9a-f]{40,64})$/.exec(head[0]!)?.[1];
  if (tree === undefined) return null;
  const parents: ObjectId[] = [];
  let at = 1;
  for (; at < head.length; at++) {
    const parent = /^parent ([0-9a-f]{40,64})$/.exec(head[at]!)?.[1];
    if (parent === undefined) break;
    parents.push(parent);
  }
  const rest = head.slice(at);
  return {
    oid,
    tree,
    parents,
    authoredAtMs: timeOf(rest, "author "),
    committedAtMs: timeOf(rest, "committer "),
    message: end === -1 ? "" : text.slice(end + 2),
  };
}

/** After the last `>`, as Git reads it. */
function timeOf(head: readonly string[], name: string): number {
  const line = head.find((one) => one.startsWith(name)) ?? "";
  const secs = /^ (\d{1,12})(?: |$)/.exec(line.slice(line.lastIndexOf(">") + 1))?.[1];
  return secs === undefined ? 0 : Number(secs) * 1000;
}

export interface BatchObject {
  readonly oid: ObjectId;
  readonly type: ObjectType;
  readonly content: Uint8Array;
}

/** What `git cat-file --batch` answers to these names; null unless it is all of them, in order, and nothing else. */
export function parseBatch(bytes: Uint8Array, oids: readonly ObjectId[]): BatchObject[] | null {
  const objects: BatchObject[] = [];
  let at = 0;
  for (const oid of oids) {
    const end = bytes.indexOf(10, at);
    if (end === -1) return null;
    const head = /^([0-9a-f]{40,64}) (blob|tree|commit|tag) (\d{1,12})$/.exec(ascii(bytes, at, end));
    if (head === null || head[1] !== oid) return null;
    const stop = end + 1 + Number(head[3]);
    if (bytes[stop] !== 10) return null;
    objects.push({ oid, type: head[2] as ObjectType, content: bytes.subarray(end + 1, stop) });
    at = stop + 1;
  }
  return at === bytes.length ? objects : null;
}

/**
 * What `git diff-tree --stdin -r --raw -z` answers to these pairs of trees: `<from> <to>\n`, and after it
 * `:<mode> <mode> <id> <id> <status>\0<path>\0` for each path. A change begins with a colon and a pair with a digit, and a
 * path reaches to its NUL, whatever is in it. Null unless it is all of them, in order, and nothing else.
 */
export function parseTreeDiffs(bytes: Uint8Array, pairs: readonly TreePair[]): PathChange[][] | null {
  const all: PathChange[][] = [];
  let at = 0;
  for (const [from, to] of pairs) {
    const head = `${from} ${to}\n`;
    if (ascii(bytes, at, at + head.length) !== head) return null;
    at += head.length;
    const read = readChanges(bytes, at);
    if (read === null) return null;
    all.push(read.changes);
    at = read.end;
  }
  return at === bytes.length ? all : null;
}

const COLON = 0x3a;

/** The same without pairs, as `git diff-index --raw -z` answers; null unless all of it is understood. */
export function parseChanges(bytes: Uint8Array): PathChange[] | null {
  const read = readChanges(bytes, 0);
  return read !== null && read.end === bytes.length ? read.changes : null;
}

/** The changes from there on, up to whatever does not begin like one; null where one is not understood. */
function readChanges(bytes: Uint8Array, from: number): { changes: PathChange[]; end: number } | null {
  const changes: PathChange[] = [];
  let at = from;
  while (bytes[at] === COLON) {
    const middle = bytes.indexOf(0, at);
    const end = middle === -1 ? -1 : bytes.indexOf(0, middle + 1);
    if (end === -1) return null;
    const change = readChange(ascii(bytes, at, middle), bytes.subarray(middle + 1, end));
    if (change === null) return null;
    changes.push(change);
    at = end + 1;
  }
  return { changes, end: at };
}

const paths = new TextDecoder("utf-8", { ignoreBOM: true });

function readChange(head: string, path: Uint8Array): PathChange | null {
  const found = /^:\d{6} (\d{6}) ([0-9a-f]{40,64}) ([0-9a-f]{40,64}) ([ADMTU])\d*$/.exec(head);
  if (found === null || path.length === 0) return null;
  const [, mode, before, oid, letter] = found as unknown as [string, string, string, string, string];
  const isGone = letter === "D" || ZERO.test(mode);
  return {
    path: paths.decode(path),
    status: letter === "A" ? "added" : letter === "D" ? "deleted" : "changed",
    // A file of the worktree that was not added yet has no id, and yet it is there.
    oid: isGone ? null : oid,
    before: ZERO.test(before) ? null : before,
    mode: isGone ? null : mode,
  };
}

/** A change of a commit's own, and what stood there in each of its parents, in their order. */
export interface OwnChange extends PathChange {
  readonly befores: readonly (ObjectId | null)[];
}

/** What is as in none of the parents, told as against the first one. One parent, or none: all of it. */
export function ownChanges(sides: readonly (readonly PathChange[])[]): OwnChange[] {
  const [first = [], ...others] = sides;
  const elsewhere = others.map((side) => new Map(side.map(({ path, before }) => [path, before])));
  return first
    .filter(({ path }) => elsewhere.every((side) => side.has(path)))
    .map((change) => ({
      ...change,
      befores: [change.before, ...elsewhere.map((side) => side.get(change.path) ?? null)],
    }));
}

function ascii(bytes: Uint8Array, from: number, to: number): string {
  let text = "";
  for (let at = from; at < to && at < bytes.length; at++) text += String.fromCharCode(bytes[at]!);
  return text;
}
