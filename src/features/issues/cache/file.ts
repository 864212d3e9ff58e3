import type { FolderWatcher } from "../../../coordinator/watched";
import { freshSuffix } from "../../../platform/hex";
import type { Platform } from "../../../platform/platform";
import type { Modes } from "../../../store/layout";
import { Catalog, type CatalogPlace } from "./catalog";
import { type Columns, STAT_NUMBERS, STATTED, Table } from "./table";

/** In the file's name as well, so that two versions of cotenant do not take turns at making it anew. */
export const CACHE_FORMAT = 1;
const MAGIC = "ctissue1";
const PREAMBLE = 24;
/** How coarse a file system's times may be. */
const COARSEST_MS = 2_100;

interface Header {
  readonly format: number;
  /** The roots that it speaks of, and whether HEAD is the last place. */
  readonly roots: readonly string[];
  readonly has_head: boolean;
  readonly rows: number;
  readonly commit: string | null;
  readonly position: string | null;
  /** Offset and length in bytes of each column, in the order in which they are read. */
  readonly sections: readonly (readonly [number, number])[];
}

/** What the catalogue is of. A cache of anything else is none. */
export interface Subject {
  readonly roots: readonly string[];
  readonly hasHead: boolean;
}

const decoder = new TextDecoder();
const utf8 = new TextEncoder();

/**
 * Null for whatever is not whole, or not of this. Nothing in it is parsed but a short header: the columns are views of
 * the bytes as they came.
 */
export function decodeCatalog(bytes: Uint8Array, subject: Subject): Catalog | null {
  if (bytes.length < PREAMBLE || decoder.decode(bytes.subarray(0, 8)) !== MAGIC) return null;
  // Plain bytes, also where they came in something that is more, and slower for it.
  const { buffer, byteOffset, length: size } = bytes.byteOffset % 8 === 0 ? bytes : bytes.slice();
  const aligned = new Uint8Array(buffer, byteOffset, size);
  const view = new DataView(aligned.buffer, aligned.byteOffset, aligned.length);
  const [length, headerLength] = [view.getFloat64(8, true), view.getUint32(16, true)];
  if (length !== aligned.length || headerLength > length - PREAMBLE) return null;
  if (view.getUint32(20, true) !== sumOf(aligned.subarray(PREAMBLE))) return null;
  try {
    const header = JSON.parse(decoder.decode(aligned.subarray(PREAMBLE, PREAMBLE + headerLength))) as Header;
    const isOurs =
      header.format === CACHE_FORMAT &&
      header.has_head === subject.hasHead &&
      JSON.stringify(header.roots) === JSON.stringify(subject.roots);
    return isOurs ? catalogFrom(new Sections(aligned, header.sections), header) : null;
  } catch {
    return null;
  }
}

function catalogFrom(sections: Sections, header: Header): Catalog {
  const { rows, roots, has_head: hasHead, commit, position } = header;
  const names = decoder.decode(sections.bytes());
  const byHalf = sections.uint32();
  const shortLengths = sections.bytes();
  const stamps = { version: sections.float64(), state: sections.bytes(), isDeleted: sections.bytes() };
  const places: CatalogPlace[] = [];
  for (let at = 0; at < roots.length + (hasHead ? 1 : 0); at++) {
    const listed = sections.float64();
    const columns: Columns = {
      kind: sections.bytes(),
      state: sections.bytes(),
      priority: sections.bytes(),
      isDeleted: sections.bytes(),
      version: sections.float64(),
      stats: sections.float64(),
      textStart: sections.uint32(),
      text: sections.bytes(),
      depStart: sections.uint32(),
      deps: sections.int32(),
      labels: sections.uint32(),
      labelSets: JSON.parse(decoder.decode(sections.bytes())),
    };
    const hasStats = at < roots.length;
    if (columns.kind.length !== rows || columns.textStart.length !== rows + 1) throw new Error("rows");
    if (columns.stats.length !== (hasStats ? rows * STATTED.length * STAT_NUMBERS : 0))
      throw new Error("stats");
    places.push({ table: new Table(rows, columns, hasStats), listed: hasStats ? listed : null });
  }
  if (names.length !== rows * 26 || byHalf.length !== rows) throw new Error("names");
  return new Catalog({ rows, names, byHalf, shortLengths, places, stamps, commit, position });
}

/** `racyFromMs`: what changed at that time or later may have changed again since it was read, within one tick. */
export function encodeCatalog(catalog: Catalog, subject: Subject, racyFromMs: number): Uint8Array {
  const columns: ArrayBufferView[] = [
    utf8.encode(catalog.names),
    catalog.byHalf,
    catalog.shortLengths,
    catalog.stamps.version,
    catalog.stamps.state,
    catalog.stamps.isDeleted,
  ];
  for (const { table, listed } of catalog.places) {
    const packed = table.packed(racyFromMs);
    const settled = listed === null || listed[3]! >= racyFromMs ? UNKNOWN : listed;
    columns.push(settled, packed.kind, packed.state, packed.priority, packed.isDeleted, packed.version);
    columns.push(packed.stats, packed.textStart, packed.text, packed.depStart, packed.deps);
    columns.push(packed.labels, utf8.encode(JSON.stringify(packed.labelSets)));
  }
  const sizes = columns.map(({ byteLength }) => byteLength);
  const header = (from: number) =>
    utf8.encode(
      JSON.stringify({
        format: CACHE_FORMAT,
        roots: subject.roots,
        has_head: subject.hasHead,
        rows: catalog.rows,
        commit: catalog.commit,
        position: catalog.position,
        sections: placed(from, sizes),
      } satisfies Header),
    );
  // The header says where things are, and its own length decides that: room for the longest it can be.
  const room = aligned(PREAMBLE + header(0).length + columns.length * 16);
  const sections = placed(room, sizes);
  const [lastAt, lastLength] = sections.at(-1)!;
  const bytes = new Uint8Array(aligned(lastAt + lastLength));
  const head = header(room);
  bytes.set(utf8.encode(MAGIC));
  bytes.set(head, PREAMBLE);
  for (const [at, column] of columns.entries())
    bytes.set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength), sections[at]![0]);
  const view = new DataView(bytes.buffer);
  view.setFloat64(8, bytes.length, true);
  view.setUint32(16, head.length, true);
  view.setUint32(20, sumOf(bytes.subarray(PREAMBLE)), true);
  return bytes;
}

const UNKNOWN = new Float64Array(STAT_NUMBERS).fill(Number.NaN);

function aligned(offset: number): number {
  return (offset + 7) & ~7;
}

function placed(from: number, sizes: readonly number[]): [number, number][] {
  let at = from;
  return sizes.map((size) => {
    const section: [number, number] = [at, size];
    at = aligned(at + size);
    return section;
  });
}

class Sections {
  readonly #bytes: Uint8Array;
  readonly #places: readonly (readonly [number, number])[];
  #next = 0;

  constructor(bytes: Uint8Array, places: readonly (readonly [number, number])[]) {
    this.#bytes = bytes;
    this.#places = places;
  }

  bytes(): Uint8Array {
    const [at, length] = this.#places[this.#next++]!;
    return this.#bytes.subarray(at, at + length);
  }

  uint32(): Uint32Array {
    const { buffer, byteOffset, byteLength } = this.bytes();
    return new Uint32Array(buffer, byteOffset, byteLength / 4);
  }

  int32(): Int32Array {
    const { buffer, byteOffset, byteLength } = this.bytes();
    return new Int32Array(buffer, byteOffset, byteLength / 4);
  }

  float64(): Float64Array {
    const { buffer, byteOffset, byteLength } = this.bytes();
    return new Float64Array(buffer, byteOffset, byteLength / 8);
  }
}

/**
 * Against torn and rotten files, not against people. All of it is summed at every start: four words at a time, in sums
 * that do not wait for each other.
 */
function sumOf(bytes: Uint8Array): number {
  const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >>> 2);
  const whole = words.length & ~3;
  let [a, b, c, d] = [0x811c9dc5 | 0, 0x1b873593, 0x2545f491, words.length];
  for (let at = 0; at < whole; at += 4) {
    a = Math.imul(a ^ words[at]!, PRIME);
    b = Math.imul(b ^ words[at + 1]!, PRIME);
    c = Math.imul(c ^ words[at + 2]!, PRIME);
    d = Math.imul(d ^ words[at + 3]!, PRIME);
  }
  for (let at = whole; at < words.length; at++) a = Math.imul(a ^ words[at]!, PRIME);
  for (const other of [b, c, d]) a = Math.imul(a ^ other ^ (other >>> 15), PRIME);
  return (a ^ (a >>> 13)) >>> 0;
}

const PRIME = 0x01000193;

/** Where a cache is kept, and for whom. */
export interface CachePlace {
  readonly path: string;
  readonly modes: Modes;
  /** Who may know what has changed since it was written. */
  readonly watcher?: () => Promise<FolderWatcher | null>;
}

/** Nobody takes that long to write one. */
const LEFT_MS = 60_000;

/** What is in the file, and a name that no other content has. */
export interface Kept {
  readonly catalog: Catalog;
  readonly name: string;
}

/** Its sum and its length, as the preamble has them. */
function nameOf(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, PREAMBLE);
  return `${view.getUint32(20, true).toString(16)}-${view.getFloat64(8, true)}`;
}

/** Never a reason to fail, whatever is wrong with it. */
export async function readCatalog(platform: Platform, path: string, subject: Subject): Promise<Kept | null> {
  try {
    const bytes = await platform.files.readFile(path);
    const catalog = bytes === null ? null : decodeCatalog(bytes, subject);
    return catalog === null ? null : { catalog, name: nameOf(bytes!) };
  } catch {
    return null;
  }
}

/**
 * Appears whole, by rename; not synced, because what a power cut leaves of it shows in its sum. `startedMs` is when the
 * first of it was read, by the monotonic clock. A clone that may not be written to has no cache: null.
 */
export async function writeCatalog(
  platform: Platform,
  { path, modes }: CachePlace,
  subject: Subject,
  catalog: Catalog,
  startedMs: number,
): Promise<string | null> {
  const { files, random, clock } = platform;
  const temporary = `${path}.new-${freshSuffix(random)}`;
  try {
    const directory = path.slice(0, path.lastIndexOf("/"));
    if ((await files.stat(directory.slice(0, directory.lastIndexOf("/")))) === null) return null;
    if (!(await files.makeDirectory(directory, modes.directory)))
      await clearLeftovers(platform, directory, LEFT_MS);
    const fd = await files.open(temporary, "create", modes.file);
    let name: string;
    try {
      // What time it is where the issues are, and was when we began: this machine's own clock may say anything.
      const seen = new Float64Array(STAT_NUMBERS);
      await files.lstatAll(1, () => temporary, seen);
      const racyFromMs = seen[3]! - (clock.monotonicMs() - startedMs) - COARSEST_MS;
      const bytes = encodeCatalog(catalog, subject, racyFromMs);
      name = nameOf(bytes);
      for (let at = 0; at < bytes.length; ) at += await files.writeAt(fd, bytes.subarray(at), at);
    } finally {
      await files.close(fd);
    }
    await files.rename(temporary, path);
    return name;
  } catch {
    await discard(platform, temporary);
    return null;
  }
}

async function discard({ files }: Platform, path: string): Promise<void> {
  try {
    await files.unlink(path);
  } catch {
    // Whoever writes next clears it away.
  }
}

/** What a killed writer left there; a young one may be somebody at work. */
export async function clearLeftovers(
  { files, clock }: Platform,
  directory: string,
  recentMs: number,
): Promise<void> {
  for (const name of (await files.readDirectory(directory)) ?? []) {
    if (!/\.new-[0-9a-f]{12}$/.test(name)) continue;
    const stat = await files.lstat(`${directory}/${name}`);
    if (stat !== null && stat.mtimeMs < clock.wallMs() - recentMs) await files.unlink(`${directory}/${name}`);
  }
}
