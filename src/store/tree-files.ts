import type { Digest, Files } from "../platform/platform";
import type { Modes } from "./layout";
import { seal, unseal } from "./sealed";
import { unfinished } from "./tree-names";
import { WireError } from "./wire";

/** An index that does not hold what it should: what it said must be found in the log. */
export class DamagedIndex extends Error {}

/** The index's small files and their directories, one at a time. */
export class TreeFiles {
  /** Directories seen to be there. Another process may have removed them since. */
  readonly #known = new Set<string>();

  constructor(
    private readonly files: Files,
    private readonly digest: Digest,
    private readonly modes: Modes,
  ) {}

  async list(directory: string): Promise<string[]> {
    return (await this.files.readDirectory(directory)) ?? [];
  }

  async has(path: string): Promise<boolean> {
    return (await this.files.stat(path)) !== null;
  }

  async read(path: string): Promise<Readonly<Record<string, unknown>> | null> {
    const bytes = await this.files.readFile(path);
    if (bytes === null) return null;
    const value = unseal(this.digest, bytes);
    if (value === null) throw new DamagedIndex(path);
    return value;
  }

  /** False when there is no file to overwrite. In place: replacing by rename costs ten times as much. */
  async overwrite(path: string, value: object): Promise<boolean> {
    const fd = await this.#openExisting(path);
    if (fd === null) return false;
    await this.#fill(fd, value);
    return true;
  }

  /** A new name appears whole, by rename. */
  async createIn(directory: string, path: string, value: object): Promise<void> {
    await this.#ensureDirectory(directory);
    try {
      await this.#create(path, value);
    } catch (error) {
      if ((error as { code?: unknown }).code !== "ENOENT") throw error;
      // Another process emptied and removed the directory since we last saw it.
      this.forget();
      await this.#ensureDirectory(directory);
      await this.#create(path, value);
    }
  }

  /** False when it was not there. */
  async remove(path: string): Promise<boolean> {
    return this.files.unlink(path);
  }

  /** If nothing is in it. */
  async removeDirectory(path: string): Promise<void> {
    if (await this.files.removeDirectory(path)) this.#known.delete(path);
  }

  /** Removes everything below, except these. */
  async empty(path: string, kept: readonly string[]): Promise<void> {
    this.forget();
    for (const name of await this.list(path)) {
      const child = `${path}/${name}`;
      if (kept.includes(child)) continue;
      if ((await this.files.lstat(child))?.kind === "directory") {
        await this.empty(child, []);
        await this.files.removeDirectory(child);
      } else await this.files.unlink(child);
    }
  }

  forget(): void {
    this.#known.clear();
  }

  async #create(path: string, value: object): Promise<void> {
    const temporary = unfinished(path);
    await this.#fill(await this.files.open(temporary, "update-or-create", this.modes.file), value);
    await this.files.rename(temporary, path);
  }

  async #fill(fd: number, value: object): Promise<void> {
    try {
      const bytes = seal(this.digest, value, (await this.files.fstat(fd)).size);
      if ((await this.files.writeAt(fd, bytes, 0)) !== bytes.length)
        throw Object.assign(new Error("short write"), { code: "ENOSPC" });
    } finally {
      await this.files.close(fd);
    }
  }

  async #openExisting(path: string): Promise<number | null> {
    if ((await this.files.stat(path)) === null) return null;
    try {
      return await this.files.open(path, "update");
    } catch (error) {
      const code = (error as { code?: unknown }).code;
      if (code === "ENOENT" || code === "ENOTDIR") return null;
      throw error;
    }
  }

  async #ensureDirectory(path: string): Promise<void> {
    if (this.#known.has(path)) return;
    try {
      await this.files.makeDirectory(path, this.modes.directory);
    } catch (error) {
      if ((error as { code?: unknown }).code !== "ENOENT") throw error;
      const above = path.slice(0, path.lastIndexOf("/"));
      this.#known.delete(above);
      await this.#ensureDirectory(above);
      await this.files.makeDirectory(path, this.modes.directory);
    }
    if (this.#known.size < 10_000) this.#known.add(path);
  }
}

/** A disk that does not answer is another matter: what it hides may be whole. */
export function damagedAsNull(error: unknown): null {
  if (error instanceof DamagedIndex) return null;
  throw error;
}

/** Sealed by us, and yet not what belongs there. */
export function understood<T>(path: string, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (error instanceof WireError) throw new DamagedIndex(path);
    throw error;
  }
}
