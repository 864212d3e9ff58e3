import { createScanner, getNodeValue, type Node, type ParseError, parseTree } from "jsonc-parser";

/**
 * Changes to other people's JSON, with or without comments, that only put something in or take something out: not one
 * character of theirs is written anew.
 */
export interface Splice {
  /** Where it goes, in the text as it was before. */
  readonly at: number;
  readonly text: string;
}

/** A part that goes, as positions in the text. */
export type Cut = readonly [start: number, end: number];

export interface JsonText {
  readonly text: string;
  /** Null where there is nothing but white space. */
  readonly root: Node | null;
  readonly newline: string;
  readonly indent: string;
}

/** The scanner's words, which its own package keeps as numbers. */
const OPENS = new Set([1, 3]);
const CLOSES = new Set([2, 4]);
const COMMA = 5;
const WHITE_SPACE = new Set([14, 15]);
const END = 17;

const DEEPEST = 200;
const WHITE = /^[\uFEFF\s]*$/;

/** What cannot be read is a sentence that says why. */
export function readJson(text: string): JsonText | string {
  const newline = text.includes("\r\n") ? "\r\n" : "\n";
  const indent = /^([ \t]+)["\][{}]/m.exec(text)?.[1] ?? "  ";
  if (WHITE.test(text)) return { text, root: null, newline, indent };
  if (isTooDeep(text)) return `it is nested more than ${DEEPEST} deep`;
  const errors: ParseError[] = [];
  // Positions stay those of the whole text: a byte order mark counts as one character.
  const root = parseTree(text.replace(/^\uFEFF/, " "), errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first !== undefined) return `it is no JSON: line ${lineOf(text, first.offset)} cannot be read`;
  if (root === undefined || root.type !== "object") return "it is no JSON object";
  return { text, root, newline, indent };
}

function lineOf(text: string, position: number): number {
  return text.slice(0, position).split("\n").length;
}

/** The parser calls itself for everything that is inside of something. */
function isTooDeep(text: string): boolean {
  const scanner = createScanner(text, true);
  let depth = 0;
  for (let kind: number = scanner.scan(); kind !== END; kind = scanner.scan()) {
    if (OPENS.has(kind)) depth++;
    if (CLOSES.has(kind)) depth--;
    if (depth > DEEPEST) return true;
  }
  return false;
}

/** Of several with one name the last counts, as for every JSON parser that takes them at all. */
export function propertyOf(object: Node, name: string): Node | null {
  return propertiesOf(object, name).at(-1) ?? null;
}

export function propertiesOf(object: Node, name: string): Node[] {
  return (object.children ?? []).flatMap(({ children }) =>
    children?.[0]?.value === name && children[1] !== undefined ? [children[1]] : [],
  );
}

export function itemsOf(array: Node): readonly Node[] {
  return array.type === "array" ? (array.children ?? []) : [];
}

/** Without a prototype, so that no name in it means anything. */
export function nodeValue(node: Node): unknown {
  return getNodeValue(node);
}

/** Our own value as it would look in that file, its first line without indentation. */
export function written({ newline, indent }: JsonText, value: unknown, outer: string): string {
  return JSON.stringify(value, null, indent).replaceAll("\n", newline + outer);
}

/** Items go to the end of an object or array; `item` is told with which indentation it stands there. */
export function appended(
  json: JsonText,
  container: Node,
  items: readonly ((outer: string) => string)[],
): Splice[] {
  const { text, newline } = json;
  const close = container.offset + container.length - 1;
  const last = container.children?.at(-1);
  const from = last === undefined ? container.offset + 1 : last.offset + last.length;
  const { end, commas } = tokensBetween(text, from, close);
  const outer = childIndent(json, container);
  const tail = text.slice(end, close).includes("\n") ? "" : newline + indentAt(text, container.offset);
  const body = items.map((item) => newline + outer + item(outer)).join(",") + tail;
  if (last === undefined || commas.length > 0) return [{ at: end, text: body }];
  if (end === from) return [{ at: from, text: `,${body}` }];
  // A remark stands behind the last one, and stays with it.
  return [
    { at: from, text: "," },
    { at: end, text: body },
  ];
}

/** Where the last comma or comment between two places ends. */
function tokensBetween(text: string, from: number, to: number) {
  const scanner = createScanner(text.slice(0, to), false);
  scanner.setPosition(from);
  let end = from;
  const commas: number[] = [];
  const comments: Cut[] = [];
  for (let kind: number = scanner.scan(); kind !== END; kind = scanner.scan()) {
    if (WHITE_SPACE.has(kind)) continue;
    const start = scanner.getTokenOffset();
    end = start + scanner.getTokenLength();
    if (kind === COMMA) commas.push(start);
    else comments.push([start, end]);
  }
  return { end, commas, comments };
}

function childIndent({ text, indent }: JsonText, container: Node): string {
  const first = container.children?.[0];
  const own = first === undefined ? null : lineStart(text, first.offset);
  return own ?? indentAt(text, container.offset) + indent;
}

/** The white space before this place, if nothing else is before it in its line. */
function lineStart(text: string, position: number): string | null {
  const before = text.slice(text.lastIndexOf("\n", position - 1) + 1, position);
  return /^[ \t]*$/.test(before) && text.lastIndexOf("\n", position - 1) !== -1 ? before : null;
}

function indentAt(text: string, position: number): string {
  return /^[ \t]*/.exec(text.slice(text.lastIndexOf("\n", position - 1) + 1))![0];
}

export function withSplices(text: string, splices: readonly Splice[]): { text: string; cuts: Cut[] } {
  let whole = "";
  let from = 0;
  const cuts: Cut[] = [];
  for (const { at, text: added } of [...splices].sort((a, b) => a.at - b.at)) {
    whole += text.slice(from, at);
    cuts.push([whole.length, whole.length + added.length]);
    whole += added;
    from = at;
  }
  return { text: whole + text.slice(from), cuts };
}

export function withoutCuts(text: string, cuts: readonly Cut[]): string {
  let whole = "";
  let from = 0;
  for (const [start, end] of [...cuts].sort(([a], [b]) => a - b)) {
    whole += text.slice(from, Math.max(from, start));
    from = Math.max(from, end);
  }
  return whole + text.slice(from);
}

/**
 * What has to go for these items and properties to be gone, with a comma for each, and whatever is empty then. Comments of
 * others stay, and so does what they are in.
 */
export function cutsFor({ text, root }: JsonText, going: ReadonlySet<Node>): Cut[] {
  const cuts: Cut[] = [];
  const leaves = (node: Node): boolean => {
    if (going.has(node)) return true;
    if (node.type === "property") return node.children?.[1] !== undefined && leaves(node.children[1]);
    const children = node.children ?? [];
    const gone = children.filter(leaves);
    if (gone.length === 0) return false;
    const inside = innerCuts(text, node, children, new Set(gone));
    if (gone.length === children.length && node !== root && !inside.hasComments) return true;
    cuts.push(...inside.cuts);
    return false;
  };
  if (root !== null) leaves(root);
  return cuts;
}

function innerCuts(text: string, container: Node, children: readonly Node[], gone: ReadonlySet<Node>) {
  const cuts: Cut[] = [];
  let from = container.offset + 1;
  let hasKept = false;
  let hasComments = false;
  /** The comma of one that went and had none kept before it. */
  let owed = false;
  for (const child of [...children, null]) {
    const to = child === null ? container.offset + container.length - 1 : child.offset;
    const { end, commas, comments } = tokensBetween(text, from, to);
    hasComments ||= comments.length > 0;
    const isGone = child !== null && gone.has(child);
    const [comma] = commas;
    if (comma !== undefined && (owed || (isGone && hasKept))) cuts.push([comma, comma + 1]);
    owed = isGone && !hasKept;
    // The line's end belongs to a remark before it.
    const isRemarked = comments.some(([start, stop]) => stop === end && text.startsWith("//", start));
    if (isGone) cuts.push([isRemarked ? child.offset : end, child.offset + child.length]);
    else hasKept ||= child !== null;
    if (child !== null) from = child.offset + child.length;
  }
  return { cuts, hasComments };
}
