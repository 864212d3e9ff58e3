import type { Descriptor, Later, Locks } from "../../src/platform/platform";
import type { FileInode, LockWaiter } from "./inode";
import type { Machine } from "./machine";
import type { OpenFile } from "./open-file";
import type { FaultCode, Operation } from "./operation";
import { PosixError } from "./posix-error";
import type { SimProcess } from "./process";

/**
 * Open-file-description locks as on Linux: exclusive, owned by the description, so two descriptors that one
 * process opened exclude each other and locking one twice succeeds. Needs a descriptor open for writing.
 */
export class SimLocks implements Locks {
  readonly #machine: Machine;
  readonly #process: SimProcess;

  constructor(machine: Machine, process: SimProcess) {
    this.#machine = machine;
    this.#process = process;
  }

  tryLock(fd: Descriptor): Later<boolean> {
    return this.#machine.scheduler.perform(this.#process, {
      kind: "tryLock",
      path: this.#process.descriptors.find(fd)?.path ?? `descriptor ${fd}`,
      run: () => {
        const file = lockable(this.#process, fd);
        const inode = file.file();
        if (inode.lockHolder !== null && inode.lockHolder !== file) {
          this.#machine.counters.count("lock.try-refused");
          return false;
        }
        inode.lockHolder = file;
        return true;
      },
    });
  }

  async lock(fd: Descriptor): Promise<void> {
    if (!this.#process.isAlive && !this.#machine.settings.isImmediate) return new Promise(() => {});
    await this.#machine.scheduler.perform(this.#process, new LockOperation(this.#machine, this.#process, fd));
  }

  unlock(fd: Descriptor): Later<void> {
    return this.#machine.scheduler.perform(this.#process, {
      kind: "unlock",
      path: this.#process.descriptors.find(fd)?.path ?? `descriptor ${fd}`,
      run: () => {
        const file = this.#process.descriptors.get(fd);
        const inode = file.file();
        if (inode.lockHolder === file) inode.lockHolder = null;
      },
    });
  }
}

class LockOperation implements Operation<void>, LockWaiter {
  readonly kind = "lock";
  readonly path: string;
  readonly #process: SimProcess;
  readonly #isFair: boolean;
  readonly #fd: Descriptor;
  readonly #file: OpenFile | null;
  readonly #inode: FileInode | null;

  constructor(machine: Machine, process: SimProcess, fd: Descriptor) {
    this.#process = process;
    this.#isFair = machine.settings.lockOrder === "fifo";
    this.#fd = fd;
    this.#file = process.descriptors.find(fd);
    this.#inode = this.#file?.inode.kind === "file" ? this.#file.inode : null;
    this.path = this.#file?.path ?? `descriptor ${fd}`;
    this.#inode?.lockQueue.push(this);
    process.lockWaits.add(this);
    if (this.#inode !== null && this.#inode.lockHolder !== null) machine.counters.count("lock.waited");
  }

  get isStopped(): boolean {
    return this.#process.isPaused;
  }

  /** A newcomer's `tryLock` may still get in between an unlock and this: kernels do not hand locks over. */
  isReady(): boolean {
    if (this.#inode === null || this.#process.descriptors.find(this.#fd) !== this.#file) return true;
    if (this.#inode.lockHolder !== null) return this.#inode.lockHolder === this.#file;
    return !this.#isFair || this.#inode.lockQueue.find((waiter) => !waiter.isStopped) === this;
  }

  run(): void {
    this.#leave();
    const file = lockable(this.#process, this.#fd);
    if (file !== this.#file) throw new PosixError("EBADF", this.path, "closed while waiting for its lock");
    file.file().lockHolder = file;
  }

  fail(code: FaultCode): void {
    this.#leave();
    throw new PosixError(code, this.path, "injected");
  }

  die(): "undone" {
    this.#leave();
    return "undone";
  }

  joinQueueAgain(): void {
    const queue = this.#inode?.lockQueue;
    const at = queue?.indexOf(this) ?? -1;
    if (queue !== undefined && at >= 0) queue.push(...queue.splice(at, 1));
  }

  #leave(): void {
    this.#process.lockWaits.delete(this);
    if (this.#inode !== null)
      this.#inode.lockQueue = this.#inode.lockQueue.filter((waiter) => waiter !== this);
  }
}

function lockable(process: SimProcess, fd: Descriptor): OpenFile {
  const file = process.descriptors.get(fd);
  if (!file.isWritable) throw new PosixError("EBADF", file.path, "an exclusive lock needs write access");
  return file;
}
