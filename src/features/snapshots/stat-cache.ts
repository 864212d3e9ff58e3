import { bytesOf, byteTextOf } from "../../git/byte-text";
import { freshSuffix } from "../../platform/hex";
import type { Platform } from "../../platform/platform";
import { ROW } from "../../platform/trees";
import { writeNew } from "../../platform/write-new";
import type { Modes } from "../../store/layout";
import type { Picture } from "./picture";

const FORMAT = 1;
const MAGIC = "cotenant tree 1\n";
const SUM_CHARS = 64;

/** What the last snapshot of a worktree saw, so that the next one reads only what has changed. Derived; may go any time. */
export interface Remembered {
  readonly snapshotId: string;
  readonly picture: Picture;
  /** The parts that do not follow from the files: see `Captured`. */
  readonly rest: Readonly<Record<string, unknown>>;
}

export function cachePath(controlDir: string, worktreeId: string, withIgnored: boolean): string {
  const name = `tree-${worktreeId.replace(":", "-")}${withIgnored ? "-all" : ""}.v${FORMAT}`;
  return `${controlDir}/cache/${name}`;
}

export function encodeRemembered(
  { digest }: Platform,
  { snapshotId, picture, rest }: Remembered,
): Uint8Array {
  const { rows, directoryRows } = picture;
  const text = [...picture.paths, ...picture.directories].join("\0");
  const objects = [...picture.oids, ...picture.directoryTrees].join("\0");
  const head = JSON.stringify({
    snapshot_id: snapshotId,
    listing: picture.listingMark,
    tree: picture.tree,
    paths: picture.paths.length,
    directories: picture.directories.length,
    text_bytes: text.length,
    object_bytes: objects.length,
    rest,
  });
  const start = bytesOf(`${MAGIC}${"0".repeat(SUM_CHARS)}${escaped(head)}\n`);
  const numbers = [rows, directoryRows].map(
    (one) => new Uint8Array(one.buffer, one.byteOffset, one.byteLength),
  );
  const whole = joined([start, ...numbers, bytesOf(text), bytesOf(objects)]);
  whole.set(bytesOf(digest.sha256(whole.subarray(MAGIC.length + SUM_CHARS))), MAGIC.length);
  return whole;
}

/** Null where it is not whole, or of another format. */
export function decodeRemembered({ digest }: Platform, bytes: Uint8Array): Remembered | null {
  const prefix = MAGIC.length + SUM_CHARS;
  if (bytes.length < prefix || byteTextOf(bytes.subarray(0, MAGIC.length)) !== MAGIC) return null;
  const sum = byteTextOf(bytes.subarray(MAGIC.length, prefix));
  if (digest.sha256(bytes.subarray(prefix)) !== sum) return null;
  const end = bytes.indexOf(10, prefix);
  if (end === -1) return null;
  const head = JSON.parse(byteTextOf(bytes.subarray(prefix, end))) as Head;
  const { paths: count, directories, text_bytes: textBytes, object_bytes: objectBytes } = head;
  const numbersAt = end + 1;
  const textAt = numbersAt + (count + directories) * ROW * 8;
  const objectsAt = textAt + textBytes;
  if (objectsAt + objectBytes !== bytes.length) return null;
  // Copied (Node's own bytes are not, by `slice`), because the numbers must begin where eight bytes do.
  const numbers = new Float64Array(new Uint8Array(bytes.subarray(numbersAt, textAt)).buffer);
  const names = split(bytes.subarray(textAt, objectsAt), count + directories);
  // Where nothing has changed, nobody asks for them.
  const objects = once(() => {
    const all = split(bytes.subarray(objectsAt), count + directories);
    return { oids: all.slice(0, count), trees: all.slice(count) };
  });
  return {
    snapshotId: head.snapshot_id,
    rest: head.rest,
    picture: {
      listingMark: head.listing,
      tree: head.tree,
      paths: names.slice(0, count),
      get oids() {
        return objects().oids;
      },
      directories: names.slice(count),
      get directoryTrees() {
        return objects().trees;
      },
      rows: numbers.subarray(0, count * ROW),
      directoryRows: numbers.subarray(count * ROW),
    },
  };
}

function split(bytes: Uint8Array, count: number): string[] {
  return count === 0 ? [] : byteTextOf(bytes).split("\0");
}

export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

interface Head {
  readonly snapshot_id: string;
  readonly listing: string;
  readonly tree: string;
  readonly paths: number;
  readonly directories: number;
  readonly text_bytes: number;
  readonly object_bytes: number;
  readonly rest: Readonly<Record<string, unknown>>;
}

/** What this process read last, for one that takes snapshots again and again. */
let atHand: { readonly path: string; readonly mark: string; readonly remembered: Remembered } | null = null;

export async function loadRemembered(platform: Platform, path: string): Promise<Remembered | null> {
  const stat = await platform.files.stat(path);
  if (stat === null) return null;
  const mark = [stat.inode, stat.size, stat.mtimeMs].join(" ");
  if (atHand?.path === path && atHand.mark === mark) return atHand.remembered;
  const remembered = await readRemembered(platform, path);
  atHand = remembered === null ? null : { path, mark, remembered };
  return remembered;
}

async function readRemembered(platform: Platform, path: string): Promise<Remembered | null> {
  const bytes = await platform.files.readFile(path);
  if (bytes === null) return null;
  try {
    return decodeRemembered(platform, bytes);
  } catch {
    return null;
  }
}

/** Never the reason why something fails: without it the next snapshot takes longer, that is all. */
export async function saveRemembered(
  platform: Platform,
  path: string,
  remembered: Remembered,
  modes: Modes,
): Promise<void> {
  const { files, random } = platform;
  const fresh = `${path}.new-${freshSuffix(random)}`;
  try {
    const bytes = encodeRemembered(platform, remembered);
    await files.makeDirectory(path.slice(0, path.lastIndexOf("/")), modes.directory);
    await writeNew(files, fresh, bytes, modes.file);
    await files.rename(fresh, path);
  } catch {
    await Promise.resolve(files.unlink(fresh)).catch(() => {});
  }
}

function escaped(json: string): string {
  return json.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
