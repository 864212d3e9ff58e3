import type { Descriptor } from "../../src/platform/platform";
import type { FileInode } from "./inode";
import type { Machine } from "./machine";
import type { OpenFile } from "./open-file";
import { type FaultCode, type Operation, UNFINISHED } from "./operation";
import { PosixError } from "./posix-error";
import type { Prng } from "./prng";
import type { SimProcess } from "./process";

const TORN_BY_KILL_PROBABILITY = 1 / 16;

/**
 * One `append` or `writeAt`. It may happen in two steps; readers see the first one, other writers wait for the
 * second, as the kernel's inode lock makes them.
 */
export class WriteOperation implements Operation<number> {
  readonly kind: "append" | "writeAt";
  readonly path: string;
  readonly detail: string;
  readonly #machine: Machine;
  readonly #process: SimProcess;
  readonly #fd: Descriptor;
  readonly #data: Uint8Array;
  readonly #offset: number | "end";
  #written = 0;
  #halfDone: OpenFile | null = null;

  constructor(
    machine: Machine,
    process: SimProcess,
    fd: Descriptor,
    data: Uint8Array,
    offset: number | "end",
  ) {
    this.kind = offset === "end" ? "append" : "writeAt";
    this.path = process.descriptors.find(fd)?.path ?? `descriptor ${fd}`;
    this.detail = offset === "end" ? `${data.length} bytes` : `${data.length} bytes at ${offset}`;
    this.#machine = machine;
    this.#process = process;
    this.#fd = fd;
    // The caller may use its buffer again before the scheduler gets here.
    this.#data = data.slice();
    this.#offset = offset;
  }

  isReady(): boolean {
    const inode = this.#process.descriptors.find(this.#fd)?.inode;
    return inode?.kind !== "file" || isFreeFor(inode, this);
  }

  run(prng: Prng): number | typeof UNFINISHED {
    if (this.#written > 0 && this.#halfDone === null) return this.#written;
    const file = this.#halfDone ?? this.#target();
    const { settings, counters } = this.#machine;
    if (file.isOutOfSpace) {
      file.isOutOfSpace = false;
      counters.count("fault.ENOSPC");
      throw new PosixError("ENOSPC", this.path);
    }
    const maySplit = this.#halfDone === null && this.#data.length > 1 && !settings.isImmediate;
    if (maySplit && prng.chance(settings.splitWriteProbability)) {
      counters.count("disk.write-split");
      this.#write(file, prng.between(1, this.#data.length - 1));
      this.#halfDone = file;
      file.file().writer = this;
      return UNFINISHED;
    }
    this.#write(file, this.#data.length);
    this.#letOthersWrite();
    return this.#data.length;
  }

  fail(code: FaultCode, prng: Prng): number {
    if (this.#written === this.#data.length) return this.#written;
    const file = this.#halfDone ?? this.#target();
    const mayBeShort = code === "ENOSPC" || code === "EINTR";
    if (mayBeShort && this.#written === 0 && this.#data.length > 1 && prng.chance(0.5)) {
      this.#write(file, prng.between(1, this.#data.length - 1));
    }
    this.#letOthersWrite();
    // A write that has taken something says so; the next one tells why it stopped.
    if (this.#written === 0) throw new PosixError(code, this.path, "injected");
    if (code === "ENOSPC") file.isOutOfSpace = true;
    if (mayBeShort) this.#machine.counters.count(`fault.${code}.short-write`);
    return this.#written;
  }

  stop(): void {
    if (this.#halfDone === null) return;
    this.#write(this.#halfDone, this.#data.length);
    this.#letOthersWrite();
  }

  die(prng: Prng): "done" | "undone" | "torn" {
    const tears = this.#data.length > 1 && prng.chance(TORN_BY_KILL_PROBABILITY);
    const isDone = prng.chance(0.5);
    const file = this.#halfDone ?? (this.isReady() ? this.#targetOrNull() : null);
    if (file !== null && this.#written < this.#data.length) {
      if (tears && this.#written === 0) this.#write(file, prng.between(1, this.#data.length - 1));
      else if (isDone) this.#write(file, this.#data.length);
    }
    this.#letOthersWrite();
    if (this.#written === this.#data.length) return "done";
    return this.#written > 0 ? "torn" : "undone";
  }

  #targetOrNull(): OpenFile | null {
    try {
      return this.#target();
    } catch {
      return null;
    }
  }

  #target(): OpenFile {
    const file = this.#process.descriptors.get(this.#fd);
    if (!file.isWritable) throw new PosixError("EBADF", this.path, "opened for reading");
    if (this.#offset === "end" && file.mode !== "append")
      throw new PosixError("EINVAL", this.path, "not opened for appending");
    if (this.#offset !== "end" && !(this.#offset >= 0)) throw new PosixError("EINVAL", this.path);
    file.file();
    return file;
  }

  #write(file: OpenFile, end: number): void {
    if (end === this.#written) return;
    const part = this.#data.subarray(this.#written, end);
    // Linux ignores the offset of a descriptor opened with O_APPEND.
    const isAtEnd = this.#offset === "end" || file.mode === "append";
    this.#machine.disk.write(file, part, isAtEnd ? "end" : (this.#offset as number) + this.#written);
    this.#written = end;
  }

  #letOthersWrite(): void {
    if (this.#halfDone !== null) this.#halfDone.file().writer = null;
    this.#halfDone = null;
  }
}

export function isFreeFor(inode: FileInode, operation: object): boolean {
  return inode.writer === null || inode.writer === operation;
}
