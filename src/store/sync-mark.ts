import { isCount } from "../kernel/bounds";
import type { Digest, Files } from "../platform/platform";
import { SmallFile } from "./applied";
import type { Layout, Modes } from "./layout";
import { SCHEMA_VERSION } from "./schema";
import { seal, unseal } from "./sealed";

/**
 * The highest sequence known to be on the disk. Written after a sync and outside the mutex, so it may lag
 * behind the truth and may even step back; it never runs ahead. A higher value only saves work, and tells an
 * acknowledged line from a torn tail.
 */
export class SyncMark {
  readonly #files: Files;
  readonly #digest: Digest;
  readonly #path: string;
  readonly #file: SmallFile;
  #known = 0;

  constructor(files: Files, digest: Digest, layout: Layout, modes: Modes) {
    this.#files = files;
    this.#digest = digest;
    this.#path = layout.synced;
    this.#file = new SmallFile(files, layout.synced, modes.file);
  }

  get known(): number {
    return this.#known;
  }

  /** What other processes have found durable counts too. */
  async read(): Promise<number> {
    this.#known = Math.max(this.#known, await this.#written());
    return this.#known;
  }

  /** For a log that may be another one than before: what was known of that one does not count. */
  async reload(): Promise<number> {
    this.#known = await this.#written();
    return this.#known;
  }

  async advance(sequence: number): Promise<void> {
    this.#known = Math.max(this.#known, sequence);
    try {
      await this.#file.write(seal(this.#digest, { schema_version: SCHEMA_VERSION, sequence: this.#known }));
    } catch {
      // A full disk, or a lost index: the truth is in the log.
    }
  }

  reopen(): Promise<void> {
    return this.#file.reopen();
  }

  async #written(): Promise<number> {
    const bytes = await this.#files.readFile(this.#path);
    const value = bytes === null ? null : unseal(this.#digest, bytes);
    const { schema_version: _, sequence, ...others } = value ?? {};
    // With anything else in it, it is another small file of the index, whose sequence says nothing about the disk.
    return isCount(sequence) && Object.keys(others).length === 0 ? sequence : 0;
  }
}
