import type { Descriptor, Later } from "./platform";

/**
 * An absolute path as bytes, one character for each (as `objects/byte-text.ts` has it): names in a working tree need not
 * be Unicode, and must come back as they were.
 */
export type BytePath = string;

export type EntryKind = "file" | "directory" | "symlink" | "other";

export interface Entry {
  readonly kind: EntryKind;
  /** Permission bits only. */
  readonly mode: number;
  readonly size: number;
  readonly inode: number;
  readonly device: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
}

/** Numbers per path of `lookAll`. */
export const ROW = 6;
/** What they are; `kind` is an index into KINDS, and -1 for what is not there. */
export const COLUMN = { kind: 0, mode: 1, size: 2, inode: 3, mtimeMs: 4, ctimeMs: 5 } as const;
export const KINDS: readonly EntryKind[] = ["file", "directory", "symlink", "other"];
export const ABSENT = -1;

/**
 * The files of people: whole working trees, whatever their names. The store's own files are `Files`. Nothing here follows
 * a link in the last place of a path, and nothing waits for a pipe. Failures are thrown with a POSIX `code`.
 */
export interface Trees {
  /** Null where there is nothing. */
  look(path: BytePath): Later<Entry | null>;
  /** Many at once, each below `root`, into rows of numbers. */
  lookAll(root: BytePath, paths: readonly BytePath[], into: Float64Array): Later<void>;
  /** What is in a directory, unsorted; null where there is no directory. */
  list(path: BytePath): Later<readonly { readonly name: BytePath; readonly kind: EntryKind }[] | null>;
  readLink(path: BytePath): Later<BytePath>;
  /** A file that is no link. */
  open(path: BytePath): Later<Descriptor>;
  /** A new file, with exactly this mode. */
  create(path: BytePath, mode: number): Later<Descriptor>;
  /** From where the last one ended; 0 at the end. */
  read(fd: Descriptor, into: Uint8Array): Later<number>;
  write(fd: Descriptor, data: Uint8Array): Later<void>;
  lookAt(fd: Descriptor): Later<Entry>;
  sync(fd: Descriptor): Later<void>;
  close(fd: Descriptor): Later<void>;
  makeLink(target: BytePath, path: BytePath): Later<void>;
  /** Exactly this mode. False when a directory was there already. */
  makeDirectory(path: BytePath, mode: number): Later<boolean>;
  chmod(path: BytePath, mode: number): Later<void>;
  rename(from: BytePath, to: BytePath): Later<void>;
  /** False when it was not there. */
  unlink(path: BytePath): Later<boolean>;
  /** False when it was not there or not empty. */
  removeDirectory(path: BytePath): Later<boolean>;
  syncDirectory(path: BytePath): Later<void>;
  /** Everything below, whoever wrote it, is on the disk when this returns. */
  syncAll(path: BytePath): Later<void>;
  /** A copy of a file's content and mode, shared with the original where the file system can; synced by nobody. */
  copy(from: BytePath, to: BytePath): Later<void>;
}
