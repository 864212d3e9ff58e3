import type { FileStat, OpenMode } from "../../src/platform/platform";
import type { Counters } from "./counters";
import { DirectoryInode, FileInode, type Inode, type InodeOwner, SymlinkInode } from "./inode";
import { OpenFile } from "./open-file";
import { demand, MAY_READ, MAY_SEARCH, MAY_WRITE, type Place, walk } from "./path-walk";
import { PosixError } from "./posix-error";
import { settleAfterPowerCut } from "./power-cut";
import type { Prng } from "./prng";

export interface DiskOptions {
  /** How often, per change, the kernel writes some dirty sectors and entries on its own. */
  readonly writebackProbability: number;
  /** Zero: every change moves the time of change. Otherwise changes within one grain look alike. */
  readonly mtimeGranularityMs: number;
  readonly inodeReuseProbability: number;
}

interface Surroundings {
  readonly prng: Prng;
  readonly counters: Counters;
  readonly wallMicros: () => number;
  readonly onChange: (inode: Inode) => void;
}

const ROOT_UID = 0;
const ROOT_INODE = 2;
const DIRECTORY_BYTES = 4096;

/**
 * A local file system of a POSIX machine: inodes, names, a page cache and a platter.
 *
 * Faults that a correct store must survive:
 *  - Power cut, data: of what was written since the last successful sync of the file, each sector of 512 bytes
 *    is on the platter in its old or its new form, in any order; where nothing was before, "old" is zeros. The
 *    size is old, new or something between, so a file may end in zeros, or in the middle of a line. Truncated
 *    bytes may come back.
 *  - Power cut, names: each entry made, replaced or removed since its directory was synced is old or new on its
 *    own. After an unsynced rename both names may exist, or neither. Syncing a file does not sync its name;
 *    an unsynced directory takes everything in it along.
 *  - Power cut, sync in progress: a sync covers what had been written when it was called. What is written while
 *    it runs may be covered or not.
 *  - Failed sync (EIO): any part of the dirty pages is on the platter, all of them are clean afterwards, and the
 *    next sync succeeds without writing them. Every description that was open at the time hears of it once.
 *    Processes see the new data until the cache is dropped or the power fails.
 *  - Killed process: the system call in progress has happened or not; a write rarely in part.
 *  - Writes are not atomic for readers: a reader without the lock may see the first part of a write.
 *  - Full disk: a write is short and the next one fails with ENOSPC, or fails at once.
 *  - Inode numbers are reused as soon as nothing refers to the old file; times of change may be coarse.
 *  - `readDirectory` answers in no particular order.
 *
 * Not simulated, hence not to be survived: damage to what was synced, sectors that are torn inside, names that
 * change after their directory was synced.
 */
export class Disk implements InodeOwner {
  readonly dirtyInodes = new Set<Inode>();
  readonly root: DirectoryInode;
  readonly #options: DiskOptions;
  readonly #around: Surroundings;
  #nextInode = ROOT_INODE;
  #freeInodes: number[] = [];

  constructor(options: DiskOptions, around: Surroundings) {
    this.#options = options;
    this.#around = around;
    this.root = this.#directory(ROOT_UID, 0o777);
    this.root.links = 1;
    this.root.durableLinks = 1;
  }

  locate(path: string, uid: number, followLast = true): Place {
    const place = walk(this.root, path, uid, followLast);
    if (typeof place === "string") throw new PosixError(place, path);
    return place;
  }

  /** Null when there is nothing at the path, or when something on the way is no directory. */
  find(path: string, uid: number, followLast = true): Place | null {
    const place = walk(this.root, path, uid, followLast);
    return typeof place === "string" || place.inode === null ? null : place;
  }

  open(path: string, mode: OpenMode, permissions: number, uid: number): OpenFile {
    const place = this.locate(path, uid, mode !== "create");
    let inode = place.inode;
    if (inode === null) {
      if (mode === "read" || mode === "update") throw new PosixError("ENOENT", path);
      inode = this.#file(uid, permissions & 0o7777);
      this.#enter(place, inode, uid, path);
    } else {
      if (mode === "create") throw new PosixError("EEXIST", path);
      if (inode.kind === "directory" && mode !== "read") throw new PosixError("EISDIR", path);
      demand(inode, uid, mode === "read" ? MAY_READ : MAY_READ | MAY_WRITE, path);
    }
    inode.opens++;
    return new OpenFile(inode, path, mode, place.directory);
  }

  /** Frees the lock and, for an unlinked file, the inode, once the last descriptor is closed. */
  close(file: OpenFile): void {
    if (--file.references > 0) return;
    file.inode.opens--;
    if (file.inode.kind === "file" && file.inode.lockHolder === file) file.inode.lockHolder = null;
    this.reclaim(file.inode);
  }

  stat(inode: Inode): FileStat {
    return {
      kind: inode.kind,
      inode: inode.number,
      size:
        inode.kind === "file"
          ? inode.content.size.current
          : inode.kind === "symlink"
            ? inode.target.length
            : DIRECTORY_BYTES,
      mtimeMs: inode.mtimeMicros.current / 1000,
      mode: inode.mode.current,
      uid: inode.uid,
    };
  }

  makeDirectory(path: string, permissions: number, uid: number): void {
    const place = this.locate(path, uid, false);
    if (place.inode !== null) throw new PosixError("EEXIST", path);
    this.#enter(place, this.#directory(uid, permissions & 0o7777), uid, path);
  }

  makeSymlink(target: string, path: string, uid: number): void {
    const place = this.locate(path, uid, false);
    if (place.inode !== null) throw new PosixError("EEXIST", path);
    const link = new SymlinkInode(this, this.#takeNumber(), uid, 0o777);
    link.target = target;
    this.#enter(place, link, uid, path);
  }

  link(existing: string, created: string, uid: number): void {
    const from = this.locate(existing, uid, false);
    if (from.inode === null) throw new PosixError("ENOENT", existing);
    if (from.inode.kind === "directory") throw new PosixError("EPERM", existing);
    const to = this.locate(created, uid, false);
    if (to.inode !== null) throw new PosixError("EEXIST", created);
    this.#enter(to, from.inode, uid, created);
  }

  rename(fromPath: string, toPath: string, uid: number): void {
    const from = this.locate(fromPath, uid, false);
    if (from.inode === null) throw new PosixError("ENOENT", fromPath);
    const to = this.locate(toPath, uid, false);
    if (from.name === "" || to.name === "") throw new PosixError("EBUSY", fromPath);
    if (from.inode === to.inode) return;
    if (from.inode.kind === "directory") {
      if (`${to.canonical}/`.startsWith(`${from.canonical}/`)) throw new PosixError("EINVAL", toPath);
      if (to.inode !== null && to.inode.kind !== "directory") throw new PosixError("ENOTDIR", toPath);
      if (to.inode?.kind === "directory" && to.inode.names().length > 0)
        throw new PosixError("ENOTEMPTY", toPath);
    } else if (to.inode?.kind === "directory") throw new PosixError("EISDIR", toPath);
    demand(from.directory, uid, MAY_WRITE | MAY_SEARCH, fromPath);
    this.#enter(to, from.inode, uid, toPath);
    this.#remove(from, uid, fromPath);
  }

  unlink(path: string, uid: number): void {
    const place = this.locate(path, uid, false);
    if (place.inode === null) throw new PosixError("ENOENT", path);
    if (place.inode.kind === "directory") throw new PosixError("EISDIR", path);
    this.#remove(place, uid, path);
  }

  removeDirectory(path: string, uid: number): void {
    const place = this.locate(path, uid, false);
    if (place.inode === null) throw new PosixError("ENOENT", path);
    if (place.inode.kind !== "directory") throw new PosixError("ENOTDIR", path);
    if (place.name === "") throw new PosixError("EBUSY", path);
    if (place.inode.names().length > 0) throw new PosixError("ENOTEMPTY", path);
    this.#remove(place, uid, path);
  }

  chmod(path: string, permissions: number, uid: number): void {
    const place = this.locate(path, uid);
    if (place.inode === null) throw new PosixError("ENOENT", path);
    if (uid !== ROOT_UID && uid !== place.inode.uid) throw new PosixError("EPERM", path);
    place.inode.mode.set(permissions & 0o7777);
    this.#around.onChange(place.directory);
  }

  /** In no order that a program could rely on. */
  list(directory: DirectoryInode): string[] {
    return this.#around.prng.shuffle(directory.names());
  }

  write(file: OpenFile, data: Uint8Array, offset: number | "end"): void {
    const { content } = file.file();
    content.write(data, offset === "end" ? content.size.current : offset);
    this.#changed(file.inode, file.directory);
  }

  truncate(file: OpenFile, size: number): void {
    file.file().content.truncate(size);
    this.#changed(file.inode, file.directory);
  }

  losePower(): void {
    const inUse = settleAfterPowerCut(this.root, this.#around.prng, this.#around.counters);
    this.dirtyInodes.clear();
    this.#freeInodes = [];
    for (let number = ROOT_INODE; number < this.#nextInode; number++) {
      if (!inUse.has(number)) this.#freeInodes.push(number);
    }
  }

  reclaim(inode: Inode): void {
    if (inode.links + inode.durableLinks + inode.opens > 0) return;
    this.dirtyInodes.delete(inode);
    if (!this.#freeInodes.includes(inode.number)) this.#freeInodes.push(inode.number);
  }

  #file(uid: number, mode: number): FileInode {
    return new FileInode(this, this.#takeNumber(), uid, mode);
  }

  #directory(uid: number, mode: number): DirectoryInode {
    return new DirectoryInode(this, this.#takeNumber(), uid, mode);
  }

  #takeNumber(): number {
    const { prng, counters } = this.#around;
    if (this.#freeInodes.length > 0 && prng.chance(this.#options.inodeReuseProbability)) {
      counters.count("disk.inode-reused");
      return this.#freeInodes.pop()!;
    }
    return this.#nextInode++;
  }

  #enter(place: Place, inode: Inode, uid: number, path: string): void {
    demand(place.directory, uid, MAY_WRITE | MAY_SEARCH, path);
    place.directory.put(place.name, inode);
    if (inode.mtimeMicros.current === 0) this.#stamp(inode);
    this.#changed(place.directory, place.directory);
    if (place.inode !== null) this.#around.onChange(place.inode);
  }

  #remove(place: Place, uid: number, path: string): void {
    demand(place.directory, uid, MAY_WRITE | MAY_SEARCH, path);
    place.directory.put(place.name, null);
    this.#changed(place.directory, place.directory);
    if (place.inode !== null) this.#around.onChange(place.inode);
  }

  #changed(inode: Inode, watched: DirectoryInode): void {
    this.#stamp(inode);
    this.#writeBackPerhaps();
    this.#around.onChange(watched);
    if (inode !== watched) this.#around.onChange(inode);
  }

  #stamp(inode: Inode): void {
    const now = this.#around.wallMicros();
    const grain = this.#options.mtimeGranularityMs * 1000;
    // Every operation takes a microsecond at least, so without a grain every change shows.
    inode.mtimeMicros.set(grain > 0 ? now - (now % grain) : now);
  }

  #writeBackPerhaps(): void {
    const { prng, counters } = this.#around;
    if (this.dirtyInodes.size === 0 || !prng.chance(this.#options.writebackProbability)) return;
    counters.count("disk.writeback");
    prng.pick([...this.dirtyInodes]).writeBackSome(prng);
  }
}
