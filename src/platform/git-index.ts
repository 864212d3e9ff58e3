import { toBinary } from "./binary-text";
import type { ObjectFormat } from "./git-object";
import { hexOf } from "./hex";
import type { Files } from "./platform";

type Environment = Readonly<Record<string, string | undefined>>;

/** Where Git keeps what is staged. The commit of some paths has an index of its own, which Git names to its hooks. */
export function indexFile(
  env: Environment,
  { gitDir, worktreeRoot }: { readonly gitDir: string; readonly worktreeRoot: string },
): string {
  const named = env["GIT_INDEX_FILE"] ?? "";
  if (named === "") return `${gitDir}/index`;
  return named.startsWith("/") ? named : `${worktreeRoot}/${named}`;
}

/** Entries are in order of their names, and what begins with a dot comes early: seldom is more than this read. */
const FIRST_BYTES = 64 << 10;
const ID_BYTES: Readonly<Record<ObjectFormat, number>> = { sha1: 20, sha256: 32 };

/**
 * Which object the index has for a file. Null where it has none, or one for each side of a conflict, and where the index
 * cannot be read: whoever has to know then asks Git, which costs a process.
 */
export async function stagedObject(
  files: Files,
  index: string,
  path: string,
  objectFormat: ObjectFormat,
): Promise<string | null> {
  try {
    const fd = await files.open(index, "read");
    try {
      const find = (bytes: Uint8Array) => objectIn(bytes, path, ID_BYTES[objectFormat]);
      const found = find(await files.read(fd, 0, FIRST_BYTES));
      if (found !== "further on") return found;
      const whole = find(await files.read(fd, 0, (await files.fstat(fd)).size));
      return whole === "further on" ? null : whole;
    } finally {
      await files.close(fd);
    }
  } catch {
    return null;
  }
}

const STAT_BYTES = 40;
const EXTENDED = 0x4000;
const STAGE = 0x3000;

/** gitformat-index(5), versions 2 to 4. */
function objectIn(bytes: Uint8Array, path: string, idBytes: number): string | "further on" | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const version = view.getUint32(4);
  if (toBinary(bytes.subarray(0, 4)) !== "DIRC" || version < 2 || version > 4) return null;
  let name = "";
  let at = 12;
  for (let left = view.getUint32(8); left > 0; left--) {
    const id = at + STAT_BYTES;
    const flagsAt = id + idBytes;
    if (flagsAt + 4 > bytes.length) return "further on";
    const flags = view.getUint16(flagsAt);
    let start = flagsAt + ((flags & EXTENDED) === 0 ? 2 : 4);
    let before = "";
    if (version === 4) {
      // Less the end of the name before it, by so many bytes.
      let less = 0;
      for (let isFirst = true; ; isFirst = false) {
        const byte = bytes[start++] ?? 0;
        less = isFirst ? byte & 0x7f : ((less + 1) << 7) + (byte & 0x7f);
        if ((byte & 0x80) === 0) break;
      }
      before = name.slice(0, name.length - less);
    }
    const end = bytes.indexOf(0, start);
    if (end === -1) return "further on";
    name = before + toBinary(bytes.subarray(start, end));
    if (name > path) return null;
    if (name === path) return (flags & STAGE) === 0 ? hexOf(bytes.subarray(id, flagsAt)) : null;
    at = version === 4 ? end + 1 : at + ((end - at + 8) & ~7);
  }
  return null;
}
