import { CotenantError, fileFailure } from "../errors/cotenant-error";
import type { Descriptor, Platform } from "../platform/platform";
import type { Layout, Modes } from "./layout";

/** Who to look for when the mutex stays taken. Only ever read by people. */
export interface MutexMetadata {
  readonly pid: number;
  readonly host: string;
  readonly agentId: string;
  readonly doing: string;
}

export interface LockHandle {
  readonly fd: Descriptor;
  readonly opening: number;
}

/** How long somebody waits for the mutex. */
export interface Patience {
  /** While one and the same holder keeps it. */
  readonly busyTimeoutMs: number;
  /** While it goes from one to the next, and others are quicker each time. */
  readonly contendedTimeoutMs: number;
}

const METADATA_BYTES = 512;

/**
 * The store's critical section: an operating-system lock on a file that is never deleted or renamed. It dies
 * with its process. Held for milliseconds; never over the network, a wait, or a Git command.
 */
export class Mutex {
  #fd: Descriptor | null = null;
  /** How often the file was opened. */
  #opening = 0;
  /** A wait that outlived its caller: a thread is still in it, and the next caller takes it over. */
  #unfinished: Promise<void> | null = null;
  /** One door per process: an OS lock excludes processes, not callers (PROTOCOL 1). */
  #door: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly platform: Platform,
    private readonly layout: Layout,
    private readonly modes: Modes,
    private readonly patience: Patience,
  ) {}

  hold<T>(who: MutexMetadata, body: () => Promise<T>): Promise<T> {
    const turn = this.#door.then(async () => {
      await this.#lock(who);
      try {
        return await body();
      } finally {
        await this.#unlock();
      }
    });
    this.#door = turn.catch(() => {});
    return turn;
  }

  /**
   * The open file that the lock is on, for a child that has to keep it locked should we die (PROTOCOL 3). Good for as long
   * as `isSame` says so: another file of that name is another lock. Not to be asked for inside `hold`.
   */
  handle(): Promise<LockHandle> {
    const turn = this.#door.then(async () => {
      this.#fd ??= await this.#open();
      return { fd: this.#fd, opening: this.#opening };
    });
    this.#door = turn.catch(() => {});
    return turn;
  }

  isSame({ opening }: LockHandle): boolean {
    return this.#fd !== null && this.#opening === opening;
  }

  /** Waits for its turn; the next caller opens the file anew. */
  close(): Promise<void> {
    const turn = this.#door.then(() => this.#abandon());
    this.#door = turn.catch(() => {});
    return turn;
  }

  /** Who wrote the metadata last. It may have left since. */
  async metadata(): Promise<Record<string, unknown> | null> {
    const bytes = await this.platform.files.readFile(this.layout.mutex);
    if (bytes === null) return null;
    try {
      return JSON.parse(new TextDecoder().decode(bytes)) as Record<string, unknown>;
    } catch {
      return null;
    }
  }

  async #lock(who: MutexMetadata): Promise<void> {
    const { locks } = this.platform;
    for (let attempt = 0; attempt < 100; attempt++) {
      this.#fd ??= await this.#open();
      const fd = this.#fd;
      try {
        if (this.#unfinished !== null || !(await locks.tryLock(fd))) await this.#waitForLock(fd);
        if (await this.#isTheOne(fd)) return this.#describe(fd, who);
      } catch (error) {
        throw fileFailure(error, "locking the store's mutex", this.layout.mutex);
      }
      await this.#abandon();
    }
    throw new CotenantError("E_STORE_BUSY", "the store's lock file keeps changing under our hands");
  }

  async #open(): Promise<Descriptor> {
    try {
      this.#opening++;
      return await this.platform.files.open(this.layout.mutex, "update-or-create", this.modes.file);
    } catch (error) {
      if ((error as { code?: unknown }).code === "ENOENT") throw gone(error);
      throw fileFailure(error, "opening the store's mutex", this.layout.mutex);
    }
  }

  /** PROTOCOL 2: somebody may have removed the file against the rules; then others lock another one. */
  async #isTheOne(fd: Descriptor): Promise<boolean> {
    try {
      const { files } = this.platform;
      const [held, named] = [await files.fstat(fd), await files.stat(this.layout.mutex)];
      return named !== null && held.inode === named.inode;
    } catch (error) {
      await this.#abandon();
      throw error;
    }
  }

  async #waitForLock(fd: Descriptor): Promise<void> {
    // First, so that nothing is awaited between the start of the wait and whoever listens to it.
    let before = await this.metadata();
    const waiting = this.#unfinished ?? this.platform.locks.lock(fd);
    this.#unfinished = waiting;
    for (let waitedMs = this.patience.busyTimeoutMs; ; waitedMs += this.patience.busyTimeoutMs) {
      if (await this.#isOverSoon(waiting)) return;
      const holder = await this.metadata();
      const isStuck = holder === null || JSON.stringify(holder) === JSON.stringify(before);
      // It goes from hand to hand: our turn comes as well.
      if (!isStuck && waitedMs < this.patience.contendedTimeoutMs) {
        before = holder;
        continue;
      }
      // The wait cannot be called off. If it succeeds while nobody wants the lock, give it back at once.
      waiting.then(
        () => this.#giveBack(waiting, fd),
        () => {},
      );
      throw busy(holder, waitedMs, isStuck);
    }
  }

  async #isOverSoon(waiting: Promise<void>): Promise<boolean> {
    const sleep = this.platform.timers.sleep(this.patience.busyTimeoutMs);
    let isOver = true;
    try {
      isOver = await Promise.race([waiting.then(() => true), sleep.done.then(() => false)]);
      return isOver;
    } finally {
      // Also when it failed: the next caller asks anew.
      if (isOver) this.#unfinished = null;
      sleep.wake();
    }
  }

  #giveBack(waiting: Promise<void>, fd: Descriptor): void {
    this.#door = this.#door.then(async () => {
      if (this.#unfinished !== waiting) return;
      this.#unfinished = null;
      await this.platform.locks.unlock(fd);
    });
  }

  async #unlock(): Promise<void> {
    if (this.#fd === null) return;
    try {
      await this.platform.locks.unlock(this.#fd);
    } catch {
      // What was done inside is done. The lock goes with its descriptor.
      await this.#abandon();
    }
  }

  /** Closing the descriptor frees the lock, whatever else is wrong with it. */
  async #abandon(): Promise<void> {
    const fd = this.#fd;
    this.#fd = null;
    if (fd === null) return;
    try {
      await this.platform.files.close(fd);
    } catch {
      // Closed all the same.
    }
  }

  async #describe(fd: Descriptor, who: MutexMetadata): Promise<void> {
    const record = {
      pid: who.pid,
      host: who.host,
      agent_id: who.agentId,
      doing: who.doing,
      created_at: new Date(this.platform.clock.wallMs()).toISOString(),
    };
    const bytes = new TextEncoder().encode(JSON.stringify(record));
    const padded = new Uint8Array(METADATA_BYTES).fill(0x20);
    padded.set(bytes.subarray(0, METADATA_BYTES - 1));
    padded[METADATA_BYTES - 1] = 0x0a;
    try {
      await this.platform.files.writeAt(fd, padded, 0);
    } catch {
      // A full disk must not stop a release; nobody depends on the words.
    }
  }
}

function busy(holder: Record<string, unknown> | null, waitedMs: number, isStuck: boolean): CotenantError {
  const secs = Math.round(waitedMs / 1000);
  const who = holder === null ? "" : `process ${holder["pid"]} (${holder["agent_id"]}, ${holder["doing"]})`;
  const words = isStuck
    ? `the store has been locked for ${secs} s${who === "" ? "" : ` by ${who}`}`
    : `so many others use the store that this command did not get at it for ${secs} s; at present ${who}`;
  return new CotenantError("E_STORE_BUSY", words, {
    ...(isStuck ? {} : { hint: "run the same command again when there is less going on" }),
    data: { holder },
  });
}

/** Not made anew by whoever waited: it was to be gone. */
function gone(cause: unknown): CotenantError {
  return new CotenantError(
    "E_STORE_BUSY",
    "the control plane was taken away while this command waited for it",
    {
      hint: "if this repository is still to be used with cotenant, run the same command again",
      cause,
    },
  );
}
