import { CotenantError, fileFailure } from "../errors/cotenant-error";
import type { Descriptor, FileStat, Files } from "../platform/platform";
import type { Layout, Modes } from "./layout";

/** Keeps a descriptor open, whatever happens to the log meanwhile, until whoever syncs it is done. */
export interface Pin {
  readonly fd: Descriptor;
  release(): Promise<void>;
}

export interface AttachedLog {
  readonly fd: Descriptor;
  readonly stat: FileStat;
  /** It is another file than the last time, or the first time. */
  readonly isReopened: boolean;
}

interface OpenLog {
  readonly fd: Descriptor;
  readonly inode: number;
  pins: number;
  detached: boolean;
}

/** The current segment, opened for appending. Used under the mutex only. */
export class LogFile {
  #open: OpenLog | null = null;

  constructor(
    private readonly files: Files,
    private readonly layout: Layout,
    private readonly modes: Modes,
  ) {}

  /** Null when there is no log yet. Reopens after a rotation: the old descriptor leads into the archive. */
  async attach(): Promise<AttachedLog | null> {
    const named = await this.files.stat(this.layout.log);
    if (named === null) {
      await this.detach();
      return null;
    }
    if (this.#open !== null && this.#open.inode !== named.inode) await this.detach();
    const isReopened = this.#open === null;
    if (this.#open === null) {
      const fd = await this.files.open(this.layout.log, "append", this.modes.file);
      this.#open = { fd, inode: (await this.files.fstat(fd)).inode, pins: 0, detached: false };
      if (this.#open.inode !== named.inode) return this.attach();
    }
    return { fd: this.#open.fd, stat: named, isReopened };
  }

  pin(): Pin {
    const open = this.#open!;
    open.pins++;
    const release = async () => {
      open.pins--;
      if (open.detached && open.pins === 0) await this.files.close(open.fd);
    };
    return { fd: open.fd, release };
  }

  async detach(): Promise<void> {
    const open = this.#open;
    this.#open = null;
    if (open === null) return;
    open.detached = true;
    if (open.pins === 0) await this.files.close(open.fd);
  }

  /**
   * All of it, or none of it: a short write (disk full) is cut back before anything else happens. Where that
   * cannot be said for sure, the error has `outcome: "unknown"` in its data.
   */
  async append(fd: Descriptor, bytes: Uint8Array, size: number): Promise<void> {
    let written = 0;
    try {
      while (written < bytes.length) {
        const taken = await this.files.append(fd, bytes.subarray(written));
        if (taken === 0) throw Object.assign(new Error("nothing was written"), { code: "ENOSPC" });
        written += taken;
      }
    } catch (error) {
      const hasWholeLine = bytes.subarray(0, written).includes(10);
      const isUndone = (await this.#cutBack(fd, size, hasWholeLine)) || !hasWholeLine;
      const failure = fileFailure(error, "appending to the log", this.layout.log);
      throw isUndone ? failure : withUnknownOutcome(failure);
    }
  }

  /** What is left otherwise is an unacknowledged tail; but whole lines of it count for the next writer. */
  async #cutBack(fd: Descriptor, size: number, hasWholeLine: boolean): Promise<boolean> {
    try {
      await this.files.truncate(fd, size);
      // Or the power fails, and what was cut off is back.
      if (hasWholeLine) await this.files.datasync(fd);
      return true;
    } catch {
      return false;
    }
  }
}

function withUnknownOutcome(error: CotenantError): CotenantError {
  const { code, message, hint, data } = error;
  return new CotenantError(code, message, { hint, data: { ...data, outcome: "unknown" }, cause: error });
}
