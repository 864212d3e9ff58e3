import type { ObjectPlace } from "../../git/database";
import { ObjectDatabase } from "../../git/database";
import type { ObjectId, ObjectType } from "../../git/object-name";
import { nameOf, PackWriter } from "../../git/pack-writer";
import type { LastingGit } from "../../platform/git";
import type { Platform } from "../../platform/platform";

/** So many are written as files of their own; more make a pack, which takes one sync for all. */
const MOST_LOOSE = 24;
const MOST_LOOSE_BYTES = 4 << 20;

/** How a pack says whose it is while nothing refers to it. */
export const KEEP_MARK = "cotenant-snapshot-";

export interface SinkOptions {
  /** Objects that something keeps alive. */
  readonly known: ReadonlySet<ObjectId>;
  /** Whose they are. */
  readonly id: string;
  /** Only for the names: nothing is written. */
  readonly isDry?: boolean;
}

/** Where a snapshot's new objects go. What others refer to already is left out. */
export class ObjectSink {
  readonly #database: ObjectDatabase;
  readonly #packs: PackWriter;
  /** New ones, as long as they are few. */
  #few: Map<ObjectId, { readonly type: ObjectType; readonly content: Uint8Array }> | null = new Map();
  #bytes = 0;
  readonly #known: Set<ObjectId>;
  readonly isDry: boolean;
  written = 0;

  constructor(
    private readonly platform: Platform,
    git: LastingGit,
    private readonly place: ObjectPlace,
    { known, id, isDry = false }: SinkOptions,
  ) {
    this.#known = new Set(known);
    this.isDry = isDry;
    this.#database = new ObjectDatabase(platform, git, place);
    this.#packs = new PackWriter(platform, git, place, `${KEEP_MARK}${id}`);
  }

  async put(type: ObjectType, content: Uint8Array): Promise<ObjectId> {
    const oid = nameOf(this.platform, this.place.config.objectFormat, type, content);
    if (this.isDry || this.#known.has(oid)) return oid;
    this.#known.add(oid);
    this.written++;
    this.#bytes += content.length;
    if (this.#few !== null && (this.#few.size >= MOST_LOOSE || this.#bytes > MOST_LOOSE_BYTES)) {
      for (const few of this.#few.values()) await this.#packs.add(few.type, few.content);
      this.#few = null;
    }
    if (this.#few === null) await this.#packs.add(type, content);
    // A copy: the caller may read the next file into the same buffer.
    else this.#few.set(oid, { type, content: new Uint8Array(content) });
    return oid;
  }

  /** On the disk when this returns. */
  async flush(): Promise<void> {
    for (const { type, content } of this.#few?.values() ?? [])
      await this.#database.writeObject(type, content);
    await this.#database.flush();
    await this.#packs.flush();
  }

  /**
   * Now that a ref leads to them: whatever a clearing up took away between writing and referring is written again. Packs
   * were marked as not to be touched.
   */
  async settle(): Promise<void> {
    for (const { type, content } of this.#few?.values() ?? []) {
      const oid = nameOf(this.platform, this.place.config.objectFormat, type, content);
      if ((await this.#database.read(oid)) === null) await this.#database.writeObject(type, content);
    }
    await this.#database.flush();
    await this.#packs.release();
  }

  close(): Promise<void> {
    return this.#database.close();
  }
}
