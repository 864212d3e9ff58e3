import type { Descriptor, Digest, Files } from "../platform/platform";

/**
 * How many leases the tree must hold: on each key, inside each directory, and in all. A tree of files cannot
 * tell by itself that one of them is missing; this tells, at the cost of a look or two. It also says "nothing"
 * without asking the file system, which is what most questions come to.
 *
 * A hash table in one file of fixed size, changed in place. It may say too much, when a writer died half way,
 * never too little: counts go up before a lease's file appears, and down after it has gone. Whoever then finds
 * less than it says takes the index for damaged, and the log decides.
 */
export interface CensusName {
  /** Made anew with every rebuild of the index, so that nobody takes one for the other. */
  readonly build: string;
  readonly capacity: number;
}

const ENTRY_BYTES = 16;
const PAGE_BYTES = 4096;
const PER_PAGE = PAGE_BYTES / ENTRY_BYTES;
/** A question looks at this many entries at most; where there is no room among them the table must grow. */
const REACH = 24;
/** Room for this many entries per one in use. */
const ROOMINESS = 4;

export class DamagedCensus extends Error {}
/** There is no room: the table must be copied into a larger one. */
export class CrowdedCensus extends Error {}

export interface Entry {
  readonly high: number;
  readonly low: number;
  readonly count: number;
}

const UNUSED: Entry = { high: 0, low: 0, count: 0 };

interface Page {
  readonly view: DataView;
  readonly bytes: Uint8Array;
  isDirty: boolean;
}

export class Census {
  /** Every entry's check depends on it, so that a page of another table is not taken for one of this. */
  readonly #salt: number;
  readonly #pages = new Map<number, Page>();
  #fd: Descriptor | null = null;
  /** Opened by somebody who may only look, or on a disk that cannot be written. */
  #isReadOnly = false;

  constructor(
    private readonly files: Files,
    private readonly digest: Digest,
    private readonly path: string,
    private readonly capacity: number,
  ) {
    this.#salt = Number.parseInt(digest.sha256(path.slice(path.lastIndexOf("/") + 1)).slice(0, 8), 16);
  }

  /** For this many different things to count. */
  static capacityFor(things: number): number {
    return 2 ** Math.ceil(Math.log2(Math.max(PER_PAGE, things * ROOMINESS)));
  }

  async count(what: string): Promise<number> {
    const { high, low } = this.#hash(what);
    for (let i = 0; i < REACH; i++) {
      const at = (low + i) % this.capacity;
      const entry = this.#entryIn(this.#pages.get(pageOf(at)) ?? (await this.#load(at)), at);
      if (entry === null) return 0;
      if (entry.high === high && entry.low === low) return entry.count;
    }
    return 0;
  }

  /** In memory only, until `flush`. */
  async add(what: string, step: number): Promise<void> {
    const { high, low } = this.#hash(what);
    let free: number | null = null;
    for (let i = 0; i < REACH; i++) {
      const at = (low + i) % this.capacity;
      const entry = this.#entryIn(this.#pages.get(pageOf(at)) ?? (await this.#load(at)), at);
      if (entry !== null && entry.high === high && entry.low === low)
        return this.#put(at, { high, low, count: Math.max(0, entry.count + step) });
      if (entry === null || entry.count === 0) free ??= at;
      if (entry === null) break;
    }
    if (step <= 0) return;
    if (free === null) throw new CrowdedCensus(this.path);
    return this.#put(free, { high, low, count: step });
  }

  async flush(): Promise<void> {
    for (const [number, page] of this.#pages) {
      if (!page.isDirty) continue;
      if (this.#fd === null || this.#isReadOnly) await this.#reopen();
      const fd = this.#fd ?? (await this.#keep(await this.#open("update")));
      if ((await this.files.writeAt(fd, page.bytes, number * PAGE_BYTES)) !== PAGE_BYTES)
        throw Object.assign(new Error("short write"), { code: "ENOSPC" });
      page.isDirty = false;
    }
  }

  /** What was read may have changed since; what was not flushed is given up. */
  forget(): void {
    this.#pages.clear();
  }

  async close(): Promise<void> {
    this.forget();
    await this.#reopen();
  }

  /** Makes the file, with these entries, in the place of whatever has the name. */
  async create(entries: readonly Entry[], mode: number): Promise<void> {
    this.forget();
    for (let at = 0; at < this.capacity; at += PER_PAGE) this.#pages.set(pageOf(at), blankPage());
    for (let at = 0; at < this.capacity; at++) this.#put(at, UNUSED);
    for (const entry of entries) this.#put(this.#freeFor(entry), entry);
    for (const page of this.#pages.values()) page.isDirty = true;
    await this.files.unlink(this.path);
    this.#fd = await this.files.open(this.path, "update-or-create", mode);
    await this.flush();
  }

  /** Everything it counts, also what was not flushed. */
  async entries(): Promise<Entry[]> {
    const all: Entry[] = [];
    for (let at = 0; at < this.capacity; at++) {
      const entry = this.#entryIn(this.#pages.get(pageOf(at)) ?? (await this.#load(at)), at);
      if (entry !== null && entry.count > 0) all.push(entry);
    }
    return all;
  }

  #freeFor({ low }: Entry): number {
    for (let i = 0; i < REACH; i++) {
      const at = (low + i) % this.capacity;
      if (this.#entryIn(this.#pages.get(pageOf(at))!, at) === null) return at;
    }
    throw new CrowdedCensus(this.path);
  }

  /** Null where nothing has ever been. Zeros are what a lost page reads as, and nothing of ours. */
  #entryIn({ view }: Page, at: number): Entry | null {
    const offset = (at % PER_PAGE) * ENTRY_BYTES;
    const high = view.getUint32(offset);
    const low = view.getUint32(offset + 4);
    const count = view.getUint32(offset + 8);
    if (view.getUint32(offset + 12) !== checkOf(high, low, count, this.#salt ^ at))
      throw new DamagedCensus("an entry is not one of ours");
    return high === 0 && low === 0 && count === 0 ? null : { high, low, count };
  }

  #put(at: number, { high, low, count }: Entry): void {
    const page = this.#pages.get(pageOf(at))!;
    const offset = (at % PER_PAGE) * ENTRY_BYTES;
    page.view.setUint32(offset, high);
    page.view.setUint32(offset + 4, low);
    page.view.setUint32(offset + 8, count);
    page.view.setUint32(offset + 12, checkOf(high, low, count, this.#salt ^ at));
    page.isDirty = true;
  }

  async #load(at: number): Promise<Page> {
    const fd = this.#fd ?? (await this.#keep(await this.#openToRead()));
    const number = pageOf(at);
    const bytes = await this.files.read(fd, number * PAGE_BYTES, PAGE_BYTES);
    if (bytes.length !== PAGE_BYTES) throw new DamagedCensus(this.path);
    const page = pageFrom(bytes.slice());
    this.#pages.set(number, page);
    return page;
  }

  /** Whoever reads is likely to write next. */
  async #openToRead(): Promise<Descriptor> {
    try {
      return await this.#open("update");
    } catch (error) {
      if (error instanceof DamagedCensus) throw error;
      this.#isReadOnly = true;
      return this.#open("read");
    }
  }

  async #open(mode: "read" | "update"): Promise<Descriptor> {
    try {
      return await this.files.open(this.path, mode);
    } catch (error) {
      const code = (error as { code?: unknown }).code;
      if (code === "ENOENT" || code === "ENOTDIR") throw new DamagedCensus(this.path);
      throw error;
    }
  }

  /** Two may have opened it at once: one descriptor is kept. */
  async #keep(opened: Descriptor): Promise<Descriptor> {
    const kept = this.#fd ?? opened;
    this.#fd = kept;
    if (kept !== opened) await this.files.close(opened);
    return kept;
  }

  async #reopen(): Promise<void> {
    const fd = this.#fd;
    this.#fd = null;
    this.#isReadOnly = false;
    if (fd !== null) await this.files.close(fd);
  }

  #hash(what: string): { high: number; low: number } {
    const digest = this.digest.sha256(what);
    return {
      high: Number.parseInt(digest.slice(0, 8), 16),
      low: Number.parseInt(digest.slice(8, 16), 16),
    };
  }
}

function pageOf(at: number): number {
  return Math.floor(at / PER_PAGE);
}

function pageFrom(bytes: Uint8Array): Page {
  return { bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.length), isDirty: false };
}

function blankPage(): Page {
  return pageFrom(new Uint8Array(PAGE_BYTES));
}

/** Tells an entry from whatever else may be found in its place, other entries included. */
function checkOf(high: number, low: number, count: number, place: number): number {
  let mixed = Math.imul(high ^ (low >>> 16) ^ (low << 16), 0x9e3779b1);
  mixed = Math.imul(mixed ^ (mixed >>> 15) ^ count, 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13) ^ place, 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16) ^ 0x5bd1e995) >>> 0;
}
