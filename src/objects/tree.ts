import { type ByteText, bytesOf, byteTextOf } from "./byte-text";
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
  const sorted = [...entries].sort((a, b) => {
    const [one, other] = [sortName(a), sortName(b)];
    return one < other ? -1 : one > other ? 1 : 0;
  });
  let length = 0;
  const parts = sorted.map(({ mode, name, oid }) => {
    const head = bytesOf(`${mode} ${name}\0`);
    length += head.length + oid.length / 2;
    return { head, oid };
  });
  const content = new Uint8Array(length);
  let at = 0;
  for (const { head, oid } of parts) {
    content.set(head, at);
    at += head.length;
    for (let digit = 0; digit < oid.length; digit += 2)
      content[at++] = Number.parseInt(oid.slice(digit, digit + 2), 16);
  }
  return content;
}

function sortName(entry: TreeEntry): ByteText {
  return isTree(entry) ? `${entry.name}/` : entry.name;
}

const HEX_OF = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

function hexOf(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += HEX_OF[byte]!;
  return text;
}
