import type { FolderWatcher, Watched, WatchedQuestion } from "../../../coordinator/watched";
import { ISSUES, type IssueFolder } from "../folder";
import type { Catalog } from "./catalog";
import type { CachePlace } from "./file";

/** What somebody who watches the folders says about a catalogue: which rows have to be looked at all the same. */
export class Doubts {
  readonly #cache: CachePlace | null;
  readonly #folders: readonly IssueFolder[];
  #watcher: FolderWatcher | null = null;
  #asked: Promise<Watched | null> = Promise.resolve(null);
  #watched: Watched | null = null;
  /** For each folder, 1 for rows that may have changed; null: any may. */
  #rows: readonly Uint8Array[] | null = null;

  constructor(cache: CachePlace | null, folders: readonly IssueFolder[]) {
    this.#cache = cache;
    this.#folders = folders;
  }

  /** Whether there is somebody who is sure of the folders, but knows nothing of the cache. */
  get isUntold(): boolean {
    return this.#watched !== null && this.#rows === null;
  }

  /** Before anything is looked at: whatever changes from here on may be seen or not. */
  ask(rows: number): void {
    this.#watched = null;
    this.#rows = null;
    this.#asked = this.#ask(rows);
  }

  /** `name` is that of the cache that the catalogue came from, `inodes` those of the folders as they are. */
  async settle(catalog: Catalog, name: string | null, inodes: readonly number[]): Promise<void> {
    const watched = await this.#asked;
    this.#watched = watched;
    this.#rows = null;
    if (watched === null || watched.cache === null || watched.cache !== name) return;
    if (watched.places.some(({ inode }, at) => inode !== inodes[at])) {
      // Another directory is there than the one that is watched.
      this.#watched = null;
      return;
    }
    this.#rows = watched.places.map(({ changed }) => {
      const rows = new Uint8Array(catalog.rows);
      for (const id of changed) {
        const row = catalog.rowOf(id);
        if (row !== -1) rows[row] = 1;
      }
      return rows;
    });
  }

  /** 1 for each row of the folder that may have changed; null: look at all of them. */
  of(place: number): Uint8Array | null {
    return this.#rows?.[place] ?? null;
  }

  /** The cache of that name has in it what was found out since they were asked. */
  async tell(name: string): Promise<void> {
    if (this.#watched !== null) await this.#watcher?.tell(this.#question, this.#watched, name);
  }

  async #ask(rows: number): Promise<Watched | null> {
    this.#watcher ??= (await this.#cache?.watcher?.()) ?? null;
    if (this.#watcher === null || rows < this.#watcher.worthFrom) return null;
    return this.#watcher.ask(this.#question);
  }

  get #question(): WatchedQuestion {
    return { path: this.#cache!.path, folders: this.#folders.map(({ root }) => `${root}/${ISSUES}`) };
  }
}
