import type { Descriptor, FileStat, Files, Later, OpenMode } from "../../src/platform/platform";
import type { Capture } from "./cell";
import type { Inode } from "./inode";
import type { Machine } from "./machine";
import type { FaultCode, Operation, OperationKind } from "./operation";
import { demand, MAY_READ } from "./path-walk";
import { codeOf, PosixError } from "./posix-error";
import type { Prng } from "./prng";
import type { SimProcess } from "./process";
import { isFreeFor, WriteOperation } from "./write-operation";

/** The files of one process. Every call is a point where another process may run, or this one may die. */
export class SimFiles implements Files {
  readonly #machine: Machine;
  readonly #process: SimProcess;

  constructor(machine: Machine, process: SimProcess) {
    this.#machine = machine;
    this.#process = process;
  }

  open(path: string, mode: OpenMode, permissions = 0o600): Later<Descriptor> {
    const kind = mode === "read" ? "open" : "openForWriting";
    return this.#call(kind, path, () => {
      if (this.#process.descriptors.isFull) throw new PosixError("EMFILE", path);
      const file = this.#machine.disk.open(path, mode, permissions, this.#process.uid);
      return this.#process.descriptors.add(file);
    });
  }

  close(fd: Descriptor): Later<void> {
    const close = () => this.#machine.disk.close(this.#process.descriptors.remove(fd));
    const fail = (code: FaultCode) => {
      // As on Linux: the descriptor is gone, whatever close answers.
      close();
      throw new PosixError(code, this.#pathOf(fd), "injected");
    };
    return this.#perform({ kind: "close", path: this.#pathOf(fd), run: close, fail });
  }

  read(fd: Descriptor, offset: number, length: number): Later<Uint8Array> {
    return this.#call("read", this.#pathOf(fd), () =>
      this.#process.descriptors.get(fd).file().content.read(offset, length),
    );
  }

  append(fd: Descriptor, data: Uint8Array): Later<number> {
    return this.#perform(new WriteOperation(this.#machine, this.#process, fd, data, "end"));
  }

  writeAt(fd: Descriptor, data: Uint8Array, offset: number): Later<number> {
    return this.#perform(new WriteOperation(this.#machine, this.#process, fd, data, offset));
  }

  truncate(fd: Descriptor, size: number): Later<void> {
    const operation: Operation<void> = {
      kind: "truncate",
      path: this.#pathOf(fd),
      detail: `to ${size}`,
      isReady: () => {
        const inode = this.#process.descriptors.find(fd)?.inode;
        return inode?.kind !== "file" || isFreeFor(inode, operation);
      },
      run: () => {
        const file = this.#process.descriptors.get(fd);
        if (!file.isWritable || !(size >= 0)) throw new PosixError("EINVAL", file.path);
        this.#machine.disk.truncate(file, size);
      },
    };
    return this.#perform(operation);
  }

  datasync(fd: Descriptor): Later<void> {
    return this.#sync("datasync", fd);
  }

  datasyncInBackground(fd: Descriptor): Later<void> {
    return this.#sync("datasyncInBackground", fd);
  }

  sync(fd: Descriptor): Later<void> {
    return this.#sync("sync", fd);
  }

  async syncAll(fds: readonly Descriptor[], directories: readonly string[]): Promise<void> {
    for (const fd of fds) await this.sync(fd);
    for (const path of directories) await this.syncDirectory(path);
  }

  syncDirectory(path: string): Later<void> {
    const directory = () => {
      const { inode } = this.#machine.disk.locate(path, this.#process.uid);
      if (inode === null) throw new PosixError("ENOENT", path);
      if (inode.kind !== "directory") throw new PosixError("ENOTDIR", path);
      return inode;
    };
    return this.#perform({
      kind: "syncDirectory",
      path,
      run: () => persist(directory(), null),
      fail: (code, prng) => failSync(directory(), code, path, prng),
    });
  }

  fstat(fd: Descriptor): Later<FileStat> {
    return this.#call("fstat", this.#pathOf(fd), () =>
      this.#machine.disk.stat(this.#process.descriptors.get(fd).inode),
    );
  }

  stat(path: string): Later<FileStat | null> {
    return this.#call("stat", path, () => this.#statOf(path, true));
  }

  lstat(path: string): Later<FileStat | null> {
    return this.#call("lstat", path, () => this.#statOf(path, false));
  }

  /** The simulated disk has one time per file; its grain is as coarse as the story wants it. */
  lstatAll(count: number, pathAt: (index: number) => string, into: Float64Array): Later<void> {
    return this.#call("lstat", count === 0 ? "" : pathAt(0), () => {
      for (let i = 0; i < count; i++) {
        const stat = this.#statOf(pathAt(i), false);
        const isPlain = stat === null || stat.kind === "file" || stat.kind === "directory";
        const numbers = stat === null ? [-1, 0, 0, 0] : [stat.inode, stat.size, stat.mtimeMs, stat.mtimeMs];
        into.set(isPlain ? numbers : [Number.NaN, 0, 0, 0], i * 4);
      }
    });
  }

  readFile(path: string): Later<Uint8Array | null> {
    return this.#call("readFile", path, () => {
      const inode = this.#find(path);
      if (inode === null) return null;
      demand(inode, this.#process.uid, MAY_READ, path);
      if (inode.kind !== "file") throw new PosixError("EISDIR", path);
      return inode.content.read(0, inode.content.size.current);
    });
  }

  readDirectory(path: string): Later<string[] | null> {
    return this.#call("readDirectory", path, () => {
      const inode = this.#find(path);
      if (inode?.kind !== "directory") return null;
      demand(inode, this.#process.uid, MAY_READ, path);
      return this.#machine.disk.list(inode);
    });
  }

  realPath(path: string): Later<string | null> {
    return this.#call(
      "realPath",
      path,
      () => this.#machine.disk.find(path, this.#process.uid)?.canonical ?? null,
    );
  }

  readLink(path: string): Later<string | null> {
    return this.#call("readLink", path, () => {
      const inode = this.#machine.disk.find(path, this.#process.uid, false)?.inode;
      return inode?.kind === "symlink" ? inode.target : null;
    });
  }

  rename(from: string, to: string): Later<void> {
    const run = () => this.#machine.disk.rename(from, to, this.#process.uid);
    return this.#perform({ kind: "rename", path: to, detail: `from ${from}`, run });
  }

  link(existing: string, created: string): Later<void> {
    const run = () => this.#machine.disk.link(existing, created, this.#process.uid);
    return this.#perform({ kind: "link", path: created, detail: `to ${existing}`, run });
  }

  unlink(path: string): Later<boolean> {
    return this.#call("unlink", path, () =>
      unless(["ENOENT", "ENOTDIR"], () => this.#machine.disk.unlink(path, this.#process.uid)),
    );
  }

  makeDirectory(path: string, permissions: number): Later<boolean> {
    return this.#call("makeDirectory", path, () =>
      unless(["EEXIST"], () => this.#machine.disk.makeDirectory(path, permissions, this.#process.uid)),
    );
  }

  removeDirectory(path: string): Later<boolean> {
    return this.#call("removeDirectory", path, () =>
      unless(["ENOENT", "ENOTDIR", "ENOTEMPTY"], () =>
        this.#machine.disk.removeDirectory(path, this.#process.uid),
      ),
    );
  }

  chmod(path: string, permissions: number): Later<void> {
    return this.#call("chmod", path, () => this.#machine.disk.chmod(path, permissions, this.#process.uid));
  }

  networkFileSystem(path: string): Later<string | null> {
    return this.#call("networkFileSystem", path, () => this.#machine.settings.networkFileSystem(path));
  }

  #sync(kind: "datasync" | "datasyncInBackground" | "sync", fd: Descriptor): Later<void> {
    const path = this.#pathOf(fd);
    const begunOn = this.#process.descriptors.find(fd)?.inode ?? null;
    const begun = begunOn?.capture() ?? [];
    return this.#perform({
      kind,
      path,
      run: (prng) => {
        const file = this.#process.descriptors.get(fd);
        const { inode } = file;
        const reported = file.reportedSyncFailures;
        file.reportedSyncFailures = inode.syncFailures;
        const reportsToAll = this.#machine.settings.syncFailuresReportedTo === "each-descriptor";
        if (reportsToAll && reported < inode.syncFailures) {
          this.#machine.counters.count("fault.EIO.sync-reported-again");
          throw new PosixError("EIO", path, "an earlier sync of this file failed");
        }
        // What was written while the sync was under way may be covered or not.
        const coversOnlyBegun = inode === begunOn && inode.kind === "file" && prng.chance(0.5);
        persist(inode, coversOnlyBegun ? begun : null);
        if (kind === "sync") {
          inode.mode.capture().persist();
          inode.mtimeMicros.capture().persist();
        }
      },
      fail: (code, prng) => {
        const file = this.#process.descriptors.get(fd);
        if (code === "EIO") file.reportedSyncFailures = file.inode.syncFailures + 1;
        return failSync(file.inode, code, path, prng);
      },
    });
  }

  #statOf(path: string, followLast: boolean): FileStat | null {
    const inode = this.#find(path, followLast);
    return inode === null ? null : this.#machine.disk.stat(inode);
  }

  #find(path: string, followLast = true): Inode | null {
    return this.#machine.disk.find(path, this.#process.uid, followLast)?.inode ?? null;
  }

  #pathOf(fd: Descriptor): string {
    return this.#process.descriptors.find(fd)?.path ?? `descriptor ${fd}`;
  }

  #call<T>(kind: OperationKind, path: string, run: () => T): Later<T> {
    return this.#perform({ kind, path, run });
  }

  #perform<T>(operation: Operation<T>): Later<T> {
    return this.#machine.scheduler.perform(this.#process, operation);
  }
}

function persist(inode: Inode, begun: readonly Capture[] | null): void {
  inode.persist(begun ?? inode.capture());
}

function failSync(inode: Inode, code: FaultCode, path: string, prng: Prng): never {
  if (code === "EIO") inode.failSync(prng);
  throw new PosixError(code, path, "injected");
}

function unless(codes: readonly string[], change: () => void): boolean {
  try {
    change();
    return true;
  } catch (error) {
    if (codes.includes(codeOf(error))) return false;
    throw error;
  }
}
