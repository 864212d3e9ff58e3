import { during, fileFailure } from "../errors/cotenant-error";
import type { Descriptor, Later, Platform } from "../platform/platform";
import type { LogActor } from "./envelope";
import type { Layout } from "./layout";
import type { LogWriter } from "./log-writer";
import type { Head } from "./replay";
import { failedElsewhere } from "./suspicion";
import type { SyncMark } from "./sync-mark";

/** What a critical section left to be synced once the mutex is free. */
export interface Written {
  readonly fd: Descriptor;
  readonly head: Head;
  /** Whether there is anything of our own in it. */
  readonly wrote: boolean;
}

/** PROTOCOL 4: every success first syncs the log through the newest line it relied on, whoever wrote it. */
export class Durability {
  readonly #hold: <T>(actor: LogActor, body: () => Promise<T>) => Promise<T>;

  constructor(
    private readonly platform: Platform,
    private readonly layout: Layout,
    private readonly mark: SyncMark,
    private readonly keeper: LogWriter,
    hold: <T>(actor: LogActor, body: () => Promise<T>) => Promise<T>,
  ) {
    this.#hold = hold;
  }

  /** Outside the mutex, and before anybody is told. */
  async ensure({ fd, head, wrote }: Written, background: boolean, actor: LogActor): Promise<void> {
    if (this.mark.known >= head.sequence && (await this.#isTrusted())) return;
    // Nothing of ours to write out: somebody else may have synced what we rely on already.
    if (!wrote && (await this.#isMarked(head))) return;
    const { files } = this.platform;
    await this.#sync(head, actor, () => (background ? files.datasyncInBackground(fd) : files.datasync(fd)));
  }

  /** Under the mutex, for what is about to have an effect outside the log. A failure has changed nothing yet. */
  async ensureHere(fd: Descriptor, head: Head): Promise<void> {
    if (this.mark.known >= head.sequence || (await this.mark.read()) >= head.sequence) return;
    try {
      await this.platform.files.datasync(fd);
    } catch (error) {
      // Said once, to us: whoever syncs next would hear that all is well.
      await this.keeper.suspicion.raise();
      throw fileFailure(error, "syncing the log", this.layout.log);
    }
    await this.mark.advance(head.sequence);
  }

  /** For a success that wrote nothing, and read without the mutex. */
  async confirm(head: Head, actor: LogActor): Promise<void> {
    const { files } = this.platform;
    return during("syncing the log", this.layout.log, async () => {
      if (await this.#isMarked(head)) return;
      const fd = await files.open(this.layout.log, "read");
      try {
        await this.#sync(head, actor, () => files.datasync(fd));
      } finally {
        await files.close(fd);
      }
    });
  }

  async #isMarked(head: Head): Promise<boolean> {
    return (await this.mark.read()) >= head.sequence && (await this.#isTrusted());
  }

  /** The mark may be by somebody whose sync went well after another's had failed, before there was a note of it. */
  async #isTrusted(): Promise<boolean> {
    return !(await this.keeper.suspicion.isRaised());
  }

  /** Either everything up to `head` is safe when this returns, in this file or in another, or it throws. */
  async #sync(head: Head, actor: LogActor, sync: () => Later<void>): Promise<void> {
    const { suspicion } = this.keeper;
    let failure: unknown = null;
    try {
      await sync();
    } catch (error) {
      failure = error;
      await suspicion.raise();
    }
    // Ours may have succeeded, and another process's failed on the same file: what it lost, ours did not write.
    if (failure !== null || (await suspicion.isRaised())) {
      const isSafe = await this.#hold(actor, () => this.keeper.moveToSafety(head)).catch(() => false);
      if (!isSafe) throw fileFailure(failure ?? failedElsewhere(), "syncing the log", this.layout.log);
    }
    await this.mark.advance(head.sequence);
  }
}
