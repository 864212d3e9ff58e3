import { freshSuffix } from "../platform/hex";
import type { Descriptor, Platform } from "../platform/platform";
import { nameOfObject, type ObjectFormat, type ObjectId, type ObjectType, withHeader } from "./object-name";

export interface GitObject {
  readonly type: ObjectType;
  readonly content: Uint8Array;
}

interface Staged extends GitObject {
  readonly fd: Descriptor;
  readonly temporary: string;
}

/** So many files are open at once, at most. */
const MOST_STAGED = 64;

/** So often somebody may take a directory away between our making it and our putting something in it. */
const MOST_REMOVALS = 5;

/** Larger ones are for Git, which can read them in pieces. */
const MOST_READ = 64 << 20;

/**
 * One object per file below `objects/`, as Git itself writes them, but on the disk before anybody may rely on them: Git
 * by default syncs none of it.
 */
export class LooseObjects {
  #modes: { readonly file: number; readonly directory: number } | null = null;
  /** Directories with names that are not on the disk yet. */
  readonly #unsynced = new Set<string>();
  /** Written under another name, and not yet synced. */
  readonly #staged = new Map<ObjectId, Staged>();

  constructor(
    private readonly platform: Platform,
    private readonly root: string,
    private readonly format: ObjectFormat,
  ) {}

  /** Null where there is no such file, or a damaged one: Git may know better. */
  async read(oid: ObjectId): Promise<GitObject | null> {
    const { files, compression, digest } = this.platform;
    const staged = this.#staged.get(oid);
    if (staged !== undefined) return { type: staged.type, content: staged.content };
    const packed = await files.readFile(this.#pathOf(oid));
    if (packed === null || packed.length > MOST_READ) return null;
    let whole: Uint8Array;
    try {
      whole = await compression.inflate(packed, MOST_READ);
    } catch {
      return null;
    }
    if (nameOfObject(digest, this.format, whole) !== oid) return null;
    const end = whole.indexOf(0);
    const type = /^(blob|tree|commit|tag) \d+$/.exec(new TextDecoder().decode(whole.subarray(0, end)))?.[1];
    return type === undefined ? null : { type: type as ObjectType, content: whole.subarray(end + 1) };
  }

  nameOf(type: ObjectType, content: Uint8Array): ObjectId {
    return nameOfObject(this.platform.digest, this.format, withHeader(type, content));
  }

  /**
   * Written under another name; `flush` syncs it, and only then gives it its own: a power cut leaves no object whose
   * content is not its own. One that is there already is replaced, because nobody knows whether it was ever synced, or is
   * whole.
   */
  async write(type: ObjectType, content: Uint8Array): Promise<ObjectId> {
    const { files, compression, digest, random } = this.platform;
    const whole = withHeader(type, content);
    const oid = nameOfObject(digest, this.format, whole);
    if (this.#staged.has(oid)) return oid;
    if (this.#staged.size >= MOST_STAGED) await this.#unstage();
    const modes = await this.#openness();
    const directory = `${this.root}/${oid.slice(0, 2)}`;
    // Git's own name for it: its `prune` clears away what a killed process left.
    const temporary = `${directory}/tmp_obj_${freshSuffix(random, 8)}`;
    const bytes = await compression.deflate(whole);
    const fd = await this.#createIn(directory, temporary, modes);
    this.#staged.set(oid, { fd, temporary, type, content });
    try {
      for (let at = 0; at < bytes.length; ) at += await files.writeAt(fd, bytes.subarray(at), at);
    } catch (error) {
      await this.#discard();
      throw error;
    }
    return oid;
  }

  /** An object that another program wrote here: its name is on the disk after the next `flush`. */
  adopt(oid: ObjectId): void {
    this.#unsynced.add(this.root);
    this.#unsynced.add(`${this.root}/${oid.slice(0, 2)}`);
  }

  /** Everything written so far is there for everybody when this returns, with its content on the disk. */
  reveal(): Promise<void> {
    return this.#unstage();
  }

  /** Everything written so far is on the disk when this returns (PROTOCOL 21). */
  async flush(): Promise<void> {
    await this.#unstage();
    const { files } = this.platform;
    const directories: string[] = [];
    for (const directory of this.#unsynced)
      if ((await files.stat(directory)) !== null) directories.push(directory);
    await files.syncAll([], directories);
    this.#unsynced.clear();
  }

  /** Lets go of what was not flushed. */
  discard(): Promise<void> {
    return this.#discard();
  }

  /** Mostly the directory is there. A `git gc` removes it while it is empty, also again and again: bounded, as in Git. */
  async #createIn(
    directory: string,
    temporary: string,
    modes: { readonly file: number; readonly directory: number },
  ): Promise<Descriptor> {
    const { files } = this.platform;
    // Also the one above: whoever made the directory may have synced nothing.
    this.#unsynced.add(directory).add(this.root);
    for (let tries = 1; ; tries++) {
      try {
        return await files.open(temporary, "create", modes.file);
      } catch (error) {
        if ((error as { code?: unknown }).code !== "ENOENT" || tries > MOST_REMOVALS) throw error;
      }
      await files.makeDirectory(directory, modes.directory);
    }
  }

  /** The content first, then the name. */
  async #unstage(): Promise<void> {
    const { files } = this.platform;
    const staged = [...this.#staged];
    try {
      await files.syncAll(
        staged.map(([, { fd }]) => fd),
        [],
      );
      for (const [oid, { fd, temporary }] of staged) {
        await files.rename(temporary, this.#pathOf(oid));
        this.#staged.delete(oid);
        await files.close(fd);
      }
    } catch (error) {
      await this.#discard();
      throw error;
    }
  }

  async #discard(): Promise<void> {
    const { files } = this.platform;
    const staged = [...this.#staged.values()];
    this.#staged.clear();
    for (const { fd, temporary } of staged) {
      await files.close(fd);
      await files.unlink(temporary);
    }
  }

  #pathOf(oid: ObjectId): string {
    return `${this.root}/${oid.slice(0, 2)}/${oid.slice(2)}`;
  }

  /** As open as the directory that they are in, and never to be written again. */
  async #openness(): Promise<{ file: number; directory: number }> {
    if (this.#modes !== null) return this.#modes;
    const mode = (await this.platform.files.stat(this.root))?.mode ?? 0o755;
    this.#modes = { file: mode & 0o444, directory: mode };
    return this.#modes;
  }
}
