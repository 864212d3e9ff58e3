import { hexOf } from "../platform/hex";
import { type ByteText, byteTextOf } from "./byte-text";
import { type ObjectFormat, type ObjectId, rawLength } from "./object-name";

export const MODES = {
  file: "100644",
  executable: "100755",
  symlink: "120000",
  submodule: "160000",
  tree: "40000",
} as const;

export interface TreeEntry {
  /** Octal, as it stands in the tree: old ones have modes that nobody writes any more. */
  readonly mode: string;
  readonly name: ByteText;
  readonly oid: ObjectId;
}

export function isTree({ mode }: Pick<TreeEntry, "mode">): boolean {
  return mode === MODES.tree;
}

/** Null where it is no tree: truncated, or with a mode that is no number. */
export function parseTree(format: ObjectFormat, content: Uint8Array): TreeEntry[] | null {
  const idBytes = rawLength(format);
  const entries: TreeEntry[] = [];
  for (let at = 0; at < content.length; ) {
    const space = content.indexOf(0x20, at);
    const end = space === -1 ? -1 : content.indexOf(0, space + 1);
    if (end === -1 || end + idBytes >= content.length || end === space + 1) return null;
    const mode = byteTextOf(content.subarray(at, space));
    if (!/^[0-7]{5,6}$/.test(mode)) return null;
    const name = byteTextOf(content.subarray(space + 1, end));
    at = end + 1 + idBytes;
    entries.push({ mode: mode.replace(/^0(?=40000$)/, ""), name, oid: hexOf(content.subarray(end + 1, at)) });
  }
  return entries;
}

/** With its entries in Git's order, in which a directory's name counts as if it ended in a slash. */
export function encodeTree(entries: Iterable<TreeEntry>): Uint8Array {
  const sorted = inOrder([...entries]);
  let length = 0;
  for (const { mode, name, oid } of sorted) length += mode.length + name.length + 2 + oid.length / 2;
  const content = new Uint8Array(length);
  let at = 0;
  // Byte by byte: a call of an encoder for each name takes longer than the names do.
  const put = (text: ByteText) => {
    for (let i = 0; i < text.length; i++) content[at++] = text.charCodeAt(i);
  };
  for (const { mode, name, oid } of sorted) {
    put(mode);
    content[at++] = 0x20;
    put(name);
    content[at++] = 0;
    for (let digit = 0; digit < oid.length; digit += 2)
      content[at++] = (nibble(oid.charCodeAt(digit)) << 4) | nibble(oid.charCodeAt(digit + 1));
  }
  return content;
}

/** Usually sorted already: a tree was read in this order, and one of its entries replaced. */
function inOrder(entries: TreeEntry[]): TreeEntry[] {
  const names = entries.map(sortName);
  const isSorted = names.every((name, i) => i === 0 || names[i - 1]! <= name);
  return isSorted ? entries : entries.sort((a, b) => (sortName(a) < sortName(b) ? -1 : 1));
}

/** Of a digit of an object's name, which is in small letters. */
function nibble(code: number): number {
  return code < 0x3a ? code - 0x30 : code - 0x57;
}

function sortName(entry: TreeEntry): ByteText {
  return isTree(entry) ? `${entry.name}/` : entry.name;
}
