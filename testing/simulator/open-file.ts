import type { Descriptor, OpenMode } from "../../src/platform/platform";
import type { DirectoryInode, FileInode, Inode } from "./inode";
import { PosixError } from "./posix-error";

/** An open file description: what `open` makes, what descriptors point to, and what owns a lock. */
export class OpenFile {
  readonly inode: Inode;
  readonly path: string;
  readonly mode: OpenMode;
  /** Changes through this description show to those who watch the directory it was opened in. */
  readonly directory: DirectoryInode;
  /** Descriptors that share this description; a child process may have inherited one. */
  references = 1;
  reportedSyncFailures: number;
  /** The last write was cut short for want of space: the next one has none at all. */
  isOutOfSpace = false;

  constructor(inode: Inode, path: string, mode: OpenMode, directory: DirectoryInode) {
    this.inode = inode;
    this.path = path;
    this.mode = mode;
    this.directory = directory;
    this.reportedSyncFailures = inode.syncFailures;
  }

  get isWritable(): boolean {
    return this.mode !== "read";
  }

  file(): FileInode {
    if (this.inode.kind !== "file") throw new PosixError("EISDIR", this.path);
    return this.inode;
  }
}

const FIRST_DESCRIPTOR = 3;

/** One process's descriptors. The lowest free number is reused at once, so that use after close shows. */
export class DescriptorTable {
  readonly #open = new Map<Descriptor, OpenFile>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get isFull(): boolean {
    return this.#open.size >= this.#limit;
  }

  add(file: OpenFile): Descriptor {
    let fd = FIRST_DESCRIPTOR;
    while (this.#open.has(fd)) fd++;
    this.#open.set(fd, file);
    return fd;
  }

  find(fd: Descriptor): OpenFile | null {
    return this.#open.get(fd) ?? null;
  }

  get(fd: Descriptor): OpenFile {
    const file = this.#open.get(fd);
    if (file === undefined) throw new PosixError("EBADF", `descriptor ${fd}`);
    return file;
  }

  remove(fd: Descriptor): OpenFile {
    const file = this.get(fd);
    this.#open.delete(fd);
    return file;
  }

  removeAll(): OpenFile[] {
    const files = [...this.#open.values()];
    this.#open.clear();
    return files;
  }
}
