import * as fs from "node:fs";
import type { Descriptor } from "../platform";
import { ABSENT, type BytePath, COLUMN, type Entry, type EntryKind, KINDS, ROW, type Trees } from "../trees";

const { O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_NONBLOCK = 0, O_RDONLY, O_WRONLY } = fs.constants;
const QUIETLY = { throwIfNoEntry: false } as const;
const { S_IFMT, S_IFREG, S_IFDIR, S_IFLNK } = fs.constants;
const OTHER = KINDS.indexOf("other");
/** By a mode's upper bits. */
const KIND_OF: number[] = [];
KIND_OF[S_IFREG >> 12] = KINDS.indexOf("file");
KIND_OF[S_IFDIR >> 12] = KINDS.indexOf("directory");
KIND_OF[S_IFLNK >> 12] = KINDS.indexOf("symlink");

export function nodeTrees(): Trees {
  return TREES;
}

const TREES: Trees = {
  look(path) {
    const stat = lookAt(native(path));
    return stat === null ? null : entryOf(stat);
  },

  lookAll(root, paths, into) {
    // From the tree's own root, where the caller stands there: nothing above is looked up again.
    const prefix = isHere(root) ? "" : root.endsWith("/") ? root : `${root}/`;
    const isPlain = isAscii(prefix);
    for (let i = 0, at = 0; i < paths.length; i++, at += ROW) {
      const path = paths[i]!;
      const whole = prefix + path;
      const stat = lookAt(isPlain && isAscii(path) ? whole : Buffer.from(whole, "latin1"));
      if (stat === null) {
        into.fill(0, at, at + ROW);
        into[at] = ABSENT;
        continue;
      }
      const { mode } = stat;
      into[at + COLUMN.kind] = KIND_OF[(mode & S_IFMT) >> 12] ?? OTHER;
      into[at + COLUMN.mode] = mode & 0o777;
      into[at + COLUMN.size] = stat.size;
      into[at + COLUMN.inode] = stat.ino;
      into[at + COLUMN.mtimeMs] = stat.mtimeMs;
      into[at + COLUMN.ctimeMs] = stat.ctimeMs;
    }
  },

  list(path) {
    const found = quietly(() =>
      fs.readdirSync(native(path), { withFileTypes: true, encoding: "latin1" as BufferEncoding }),
    );
    if (found === null) return null;
    return found.map((entry) => ({ name: entry.name, kind: kindOf(entry) }));
  },

  readLink: (path) => fs.readlinkSync(native(path), { encoding: "latin1" }),

  open(path) {
    return fs.openSync(native(path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  },

  create(path, mode) {
    const fd = fs.openSync(native(path), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    // The process's umask has no say.
    if (mode !== 0o600) fs.fchmodSync(fd, mode);
    return fd;
  },

  read: (fd, into) => fs.readSync(fd, into, 0, into.length, null),

  write(fd, data) {
    for (let at = 0; at < data.length; ) at += fs.writeSync(fd, data, at);
  },

  lookAt: (fd) => entryOf(fs.fstatSync(fd)),
  sync: (fd) => fs.fsyncSync(fd),
  close: (fd: Descriptor) => fs.closeSync(fd),
  makeLink: (target, path) => fs.symlinkSync(native(target), native(path)),

  makeDirectory(path, mode) {
    try {
      fs.mkdirSync(native(path), { mode: 0o700 });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      if (!fs.lstatSync(native(path)).isDirectory()) throw error;
      return false;
    }
    if (mode !== 0o700) fs.chmodSync(native(path), mode);
    return true;
  },

  chmod: (path, mode) => fs.chmodSync(native(path), mode),
  rename: (from, to) => fs.renameSync(native(from), native(to)),

  unlink(path) {
    const unlinked = quietly(() => {
      fs.unlinkSync(native(path));
      return true;
    });
    return unlinked ?? false;
  },

  removeDirectory(path) {
    try {
      fs.rmdirSync(native(path));
      return true;
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? "";
      if (["ENOENT", "ENOTEMPTY", "EEXIST", "ENOTDIR"].includes(code)) return false;
      throw error;
    }
  },

  syncDirectory(path) {
    const fd = fs.openSync(native(path), O_RDONLY);
    try {
      fs.fsyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
  },

  syncAll(path) {
    // Node cannot ask for the whole file system at once; `sync -f` can, and is one wait instead of thousands.
    const { spawnSync } = require("node:child_process") as typeof import("node:child_process");
    const options = { stdio: "ignore", timeout: 10 * 60_000 } as const;
    const here = Buffer.from(path, "latin1").toString();
    if (process.platform === "linux" && spawnSync("sync", ["-f", "--", here], options).status === 0) return;
    syncBelow(path);
  },

  copy: (from, to) =>
    fs.copyFileSync(native(from), native(to), fs.constants.COPYFILE_EXCL | fs.constants.COPYFILE_FICLONE),
};

function isHere(root: BytePath): boolean {
  try {
    return Buffer.from(process.cwd()).toString("latin1") === root;
  } catch {
    return false;
  }
}

function syncBelow(path: BytePath): void {
  for (const { name, kind } of (TREES.list(path) as { name: string; kind: EntryKind }[] | null) ?? []) {
    const inside = `${path}/${name}`;
    if (kind === "directory") syncBelow(inside);
    else if (kind === "file") {
      const fd = fs.openSync(native(inside), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      fs.fsyncSync(fd);
      fs.closeSync(fd);
    }
  }
  TREES.syncDirectory(path);
}

/** Node takes text for UTF-8; only what is ASCII means the same bytes either way. */
function native(path: BytePath): string | Buffer {
  return isAscii(path) ? path : Buffer.from(path, "latin1");
}

const NOT_ASCII = /[^\0-\x7f]/;

function isAscii(path: BytePath): boolean {
  return !NOT_ASCII.test(path);
}

/** Written out for the sake of whole trees. */
function lookAt(path: string | Buffer): fs.Stats | null {
  try {
    return fs.lstatSync(path, QUIETLY) ?? null;
  } catch (error) {
    if (isAbsence(error)) return null;
    throw error;
  }
}

function kindOf(of: fs.Stats | fs.Dirent): EntryKind {
  if (of.isFile()) return "file";
  if (of.isDirectory()) return "directory";
  return of.isSymbolicLink() ? "symlink" : "other";
}

function entryOf(stat: fs.Stats): Entry {
  return {
    kind: kindOf(stat),
    mode: stat.mode & 0o777,
    size: stat.size,
    inode: stat.ino,
    device: stat.dev,
    mtimeMs: stat.mtimeMs,
    ctimeMs: stat.ctimeMs,
  };
}

function quietly<T>(act: () => T): T | null {
  try {
    return act();
  } catch (error) {
    if (isAbsence(error)) return null;
    throw error;
  }
}

function isAbsence(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ENOTDIR";
}
