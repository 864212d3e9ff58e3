import * as fs from "node:fs";
import type { Descriptor, FileStat, Files, OpenMode } from "../platform";
import { networkFileSystemName } from "./network-file-systems";
import { statNumbers } from "./stat-numbers";

const { O_APPEND, O_CREAT, O_EXCL, O_RDONLY, O_RDWR } = fs.constants;
/** Means nothing to a file. A pipe in the place of one would keep us for ever: like this it fails, or is empty. */
const O_NONBLOCK = fs.constants.O_NONBLOCK ?? 0;
/** What is written in place is ours, and no link: whoever may write into the Git directory could lead us anywhere with one. */
const O_NOFOLLOW = fs.constants.O_NOFOLLOW ?? 0;
const FLAGS: Record<OpenMode, number> = {
  read: O_RDONLY | O_NONBLOCK,
  update: O_RDWR | O_NONBLOCK | O_NOFOLLOW,
  "update-or-create": O_RDWR | O_CREAT | O_NONBLOCK | O_NOFOLLOW,
  append: O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK | O_NOFOLLOW,
  create: O_RDWR | O_CREAT | O_EXCL,
};
/** Bits that the process's umask may have taken away, and that a shared repository needs. */
const SHARED_BITS = 0o077;

/** Larger ones are read as Node reads files, in parts that grow. */
const MOST_AT_ONCE = 1 << 20;

/** `size` is what it was a moment ago: as long as it is no larger, one read takes it all. */
function readWithoutWaiting(path: string, size: number): Uint8Array {
  const fd = fs.openSync(path, FLAGS.read);
  try {
    if (size === 0 || size > MOST_AT_ONCE) return fs.readFileSync(fd);
    const buffer = Buffer.allocUnsafeSlow(size + 1);
    const got = fs.readSync(fd, buffer, 0, size + 1, 0);
    return got === size ? buffer.subarray(0, size) : readOn(fd, buffer.subarray(0, got));
  } finally {
    fs.closeSync(fd);
  }
}

/** It has changed meanwhile, or the system gave less than there is. */
function readOn(fd: number, begin: Uint8Array): Uint8Array {
  const parts = [begin];
  for (let at = begin.length; ; ) {
    const part = Buffer.allocUnsafe(1 << 16);
    const got = fs.readSync(fd, part, 0, part.length, at);
    if (got === 0) return Buffer.concat(parts);
    parts.push(part.subarray(0, got));
    at += got;
  }
}

/** Synchronous on purpose: the store's critical section must not wait for a thread pool. */
export class NodeFiles implements Files {
  open(path: string, mode: OpenMode, permissions = 0o600): Descriptor {
    // Node sets close-on-exec, so that no child inherits a lock by accident.
    const fd = fs.openSync(path, FLAGS[mode], permissions);
    if ((FLAGS[mode] & O_CREAT) !== 0 && (permissions & SHARED_BITS) !== 0) widen(fd, permissions);
    return fd;
  }

  close(fd: Descriptor): void {
    fs.closeSync(fd);
  }

  read(fd: Descriptor, offset: number, length: number): Uint8Array {
    const buffer = Buffer.allocUnsafe(length);
    let filled = 0;
    while (filled < length) {
      const got = fs.readSync(fd, buffer, filled, length - filled, offset + filled);
      if (got === 0) break;
      filled += got;
    }
    return buffer.subarray(0, filled);
  }

  append(fd: Descriptor, data: Uint8Array): number {
    return fs.writeSync(fd, data);
  }

  writeAt(fd: Descriptor, data: Uint8Array, offset: number): number {
    return fs.writeSync(fd, data, 0, data.length, offset);
  }

  truncate(fd: Descriptor, size: number): void {
    fs.ftruncateSync(fd, size);
  }

  datasync(fd: Descriptor): void {
    fs.fdatasyncSync(fd);
  }

  datasyncInBackground(fd: Descriptor): Promise<void> {
    return new Promise((resolve, reject) => fs.fdatasync(fd, (error) => (error ? reject(error) : resolve())));
  }

  sync(fd: Descriptor): void {
    fs.fsyncSync(fd);
  }

  syncDirectory(path: string): void {
    const fd = fs.openSync(path, O_RDONLY);
    try {
      fs.fsyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
  }

  async syncAll(fds: readonly Descriptor[], directories: readonly string[]): Promise<void> {
    const opened: number[] = [];
    try {
      for (const path of directories) opened.push(fs.openSync(path, O_RDONLY));
      // All of them end before anybody closes one of them.
      const ends = await Promise.allSettled([...fds, ...opened].map(syncOffThread));
      const failed = ends.find((end) => end.status === "rejected");
      if (failed !== undefined) throw failed.reason;
    } finally {
      for (const fd of opened) fs.closeSync(fd);
    }
  }

  fstat(fd: Descriptor): FileStat {
    return toStat(fs.fstatSync(fd));
  }

  stat(path: string): FileStat | null {
    return absentAsNull(() => {
      const stat = fs.statSync(path, { throwIfNoEntry: false });
      return stat === undefined ? null : toStat(stat);
    });
  }

  lstat(path: string): FileStat | null {
    return absentAsNull(() => {
      const stat = fs.lstatSync(path, { throwIfNoEntry: false });
      return stat === undefined ? null : toStat(stat);
    });
  }

  lstatAll(count: number, pathAt: (index: number) => string, into: Float64Array): void {
    const here = currentDirectory();
    for (let i = 0, at = 0; i < count; i++, at += 4) {
      const whole = pathAt(i);
      // Every directory above that need not be looked up again saves a few per cent.
      const path = whole.startsWith(here) ? whole.slice(here.length) : whole;
      try {
        // Only a link that leads nowhere is taken for nothing by this, and there is nothing in it to read.
        if (into[at] !== -1 || fs.existsSync(path)) statNumbers(path, into, at);
      } catch {
        into[at] = Number.NaN;
      }
    }
  }

  readFile(path: string): Uint8Array | null {
    const seen = look(path);
    return seen === null ? null : absentAsNull(() => readWithoutWaiting(path, seen.size));
  }

  readDirectory(path: string): string[] | null {
    return look(path) !== null ? absentAsNull(() => fs.readdirSync(path)) : null;
  }

  realPath(path: string): string | null {
    return absentAsNull(() => fs.realpathSync.native(path));
  }

  readLink(path: string): string | null {
    const isLink = this.lstat(path)?.kind === "symlink";
    return isLink ? absentAsNull(() => fs.readlinkSync(path)) : null;
  }

  rename(from: string, to: string): void {
    fs.renameSync(from, to);
  }

  link(existing: string, created: string): void {
    fs.linkSync(existing, created);
  }

  unlink(path: string): boolean {
    if (fs.lstatSync(path, { throwIfNoEntry: false }) === undefined) return false;
    return (
      absentAsNull(() => {
        fs.unlinkSync(path);
        return true;
      }) ?? false
    );
  }

  makeDirectory(path: string, permissions: number): boolean {
    try {
      fs.mkdirSync(path, { mode: permissions });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
      throw error;
    }
    if ((permissions & SHARED_BITS) !== 0) fs.chmodSync(path, permissions);
    return true;
  }

  removeDirectory(path: string): boolean {
    try {
      fs.rmdirSync(path);
      return true;
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === "ENOENT" || code === "ENOTEMPTY" || code === "EEXIST" || code === "ENOTDIR") return false;
      throw error;
    }
  }

  chmod(path: string, permissions: number): void {
    fs.chmodSync(path, permissions);
  }

  networkFileSystem(path: string): string | null {
    return networkFileSystemName(path);
  }
}

function syncOffThread(fd: Descriptor): Promise<void> {
  return new Promise((resolve, reject) => fs.fsync(fd, (error) => (error ? reject(error) : resolve())));
}

function widen(fd: Descriptor, permissions: number): void {
  const stat = fs.fstatSync(fd);
  const mine = process.getuid === undefined || stat.uid === process.getuid();
  if (mine && (stat.mode & 0o777) !== (permissions & 0o777)) fs.fchmodSync(fd, permissions);
}

function toStat(stat: fs.Stats): FileStat {
  return {
    kind: stat.isFile()
      ? "file"
      : stat.isDirectory()
        ? "directory"
        : stat.isSymbolicLink()
          ? "symlink"
          : "other",
    inode: stat.ino,
    size: stat.size,
    mtimeMs: stat.mtimeMs,
    mode: stat.mode & 0o7777,
    uid: stat.uid,
  };
}

/** With a slash at its end; where it is gone, something that no path begins with. */
function currentDirectory(): string {
  try {
    return `${process.cwd()}/`;
  } catch {
    return "\0";
  }
}

/**
 * Most names asked for are not there, and an exception costs ten times as much as the question. Not `existsSync`: it
 * takes a disk that fails, or a directory that may not be searched, for a name that is not there.
 */
function look(path: string): fs.Stats | null {
  try {
    return fs.statSync(path, { throwIfNoEntry: false }) ?? null;
  } catch (error) {
    // Names that nothing can have.
    if (["ELOOP", "ENAMETOOLONG", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? ""))
      return null;
    throw error;
  }
}

function absentAsNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw error;
  }
}
