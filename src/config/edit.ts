import { parse } from "smol-toml";
import { type AST, parseTOML } from "toml-eslint-parser";
import { CotenantError } from "../errors/cotenant-error";
import { isSamePath } from "./toml-file";

/**
 * Changes of one key in a TOML file that leave everything else as its author wrote it, comments included. Whatever was
 * done is read again by the other parser: only the key may differ, or the file stays as it is.
 */
export type KeyPath = readonly [section: string, name: string];

/** `value` is TOML. */
export function setKey(text: string, path: KeyPath, value: string): string {
  const found = find(text, path);
  const edited = found === null ? inserted(text, path, value) : spliced(text, found.value.range, value);
  return checked(text, edited, path, parse(`x = ${value}`, { integersAsBigInt: true })["x"]);
}

/** The same text when the key is not there. */
export function removeKey(text: string, path: KeyPath): string {
  const found = find(text, path);
  if (found === null) return text;
  return checked(text, withoutNode(text, found), path, undefined);
}

type KeyValue = AST.TOMLKeyValue;

function find(text: string, path: KeyPath): KeyValue | null {
  for (const node of parseTOML(text).body[0].body) {
    const isTable = node.type === "TOMLTable";
    const found = isTable ? findIn(node.body, path, node.resolvedKey) : findIn([node], path, []);
    if (found !== null) return found;
    if (isTable && isSamePath(node.resolvedKey, path))
      throw byHand(`[${path.join(".")}] is a section of its own there`);
  }
  return null;
}

function findIn(
  nodes: readonly KeyValue[],
  path: KeyPath,
  prefix: readonly (string | number)[],
): KeyValue | null {
  for (const node of nodes) {
    const full = [...prefix, ...node.key.keys.map((key) => (key.type === "TOMLBare" ? key.name : key.value))];
    if (isSamePath(full, path)) return node;
    if (node.value.type !== "TOMLInlineTable") continue;
    const inside = findIn(node.value.body, path, full);
    if (inside !== null) return inside;
  }
  return null;
}

function spliced(text: string, [start, end]: readonly [number, number], middle: string): string {
  return text.slice(0, start) + middle + text.slice(end);
}

/** After the line that shows its default, as `init` wrote it; else at the end of its section; else at the end. */
function inserted(text: string, [section, name]: KeyPath, value: string): string {
  const newline = text.includes("\r\n") ? "\r\n" : "\n";
  const line = `${name} = ${value}`;
  const table = parseTOML(text)
    .body[0].body.filter((node) => node.type === "TOMLTable")
    .find((node) => node.kind === "standard" && isSamePath(node.resolvedKey, [section]));
  if (table === undefined) {
    const gap = text === "" ? "" : text.endsWith("\n") ? newline : newline + newline;
    return `${text}${gap}[${section}]${newline}${line}${newline}`;
  }
  const header = endOfLine(text, table.key.range[1]);
  const rest = text.slice(header);
  const nextHeader = /^[ \t]*\[/m.exec(rest)?.index ?? rest.length;
  const shown = new RegExp(`^#[ \\t]*${name}[ \\t]*=.*$`, "m").exec(rest.slice(0, nextHeader));
  const last = table.body.at(-1);
  const at =
    shown !== null
      ? endOfLine(text, header + shown.index)
      : endOfLine(text, last === undefined ? table.key.range[1] : last.range[1]);
  const before = text.slice(0, at);
  return `${before}${before.endsWith("\n") ? "" : newline}${line}${newline}${text.slice(at)}`;
}

/** Just behind the newline that ends the line with this position. */
function endOfLine(text: string, position: number): number {
  const at = text.indexOf("\n", position);
  return at === -1 ? text.length : at + 1;
}

function withoutNode(text: string, node: KeyValue): string {
  const [start, end] = node.range;
  const lineStart = text.lastIndexOf("\n", start - 1) + 1;
  const rest = /^[ \t]*(?:#.*)?(?:\r?\n|$)/.exec(text.slice(end));
  const isAlone = text.slice(lineStart, start).trim() === "" && rest !== null;
  if (!isAlone) throw byHand("it shares its line with others");
  return text.slice(0, lineStart) + text.slice(end + rest[0].length);
}

function checked(before: string, after: string, [section, name]: KeyPath, value: unknown): string {
  const read = (text: string) => parse(text, { integersAsBigInt: true }) as Record<string, unknown>;
  const expected = read(before);
  const table = { ...(expected[section] as object | undefined) } as Record<string, unknown>;
  if (value === undefined) delete table[name];
  else table[name] = value;
  let edited: Record<string, unknown>;
  try {
    edited = read(after);
  } catch {
    throw byHand("it is written in an unusual way");
  }
  // A section may be left empty, or not.
  const shape = (document: object) =>
    JSON.stringify(document, (_, entry) => (typeof entry === "bigint" ? `${entry}n` : entry));
  const same = [{ ...expected, [section]: table }, expected].some(
    (wanted, i) =>
      (i === 0 || Object.keys(table).length === 0) && shape(sorted(wanted)) === shape(sorted(edited)),
  );
  if (!same) throw byHand("it is written in an unusual way");
  return after;
}

function sorted(value: unknown): object {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value as object;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, entry]) => [name, sorted(entry)]));
}

function byHand(why: string): CotenantError {
  return new CotenantError("E_CONFIG", `the file cannot be changed without losing its form: ${why}`, {
    hint: "change that line with an editor, then run 'cotenant config validate'",
  });
}
