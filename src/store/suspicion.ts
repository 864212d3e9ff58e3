import type { Files } from "../platform/platform";
import type { Layout, Modes } from "./layout";

/**
 * That the log's file may have lost what was written to it: a sync of it failed. The note is seen by every
 * writer, so that nobody trusts the file even if the one who found out dies at once.
 */
export class Suspicion {
  /** In case there was no room for the note. */
  #isKnownHere = false;

  constructor(
    private readonly files: Files,
    private readonly layout: Layout,
    private readonly modes: Modes,
  ) {}

  async isRaised(): Promise<boolean> {
    return this.#isKnownHere || (await this.files.stat(this.layout.syncFailed)) !== null;
  }

  async raise(): Promise<void> {
    this.#isKnownHere = true;
    try {
      const { syncFailed } = this.layout;
      await this.files.close(await this.files.open(syncFailed, "update-or-create", this.modes.file));
    } catch {
      // Then at least this process knows, and copies the log before it does anything else.
    }
  }

  /** The log is in another file now. */
  async lay(): Promise<void> {
    await this.files.unlink(this.layout.syncFailed);
    this.#isKnownHere = false;
  }
}

/** What is said of a sync that went well, and means nothing. */
export function failedElsewhere(): Error {
  return Object.assign(new Error("another process could not sync the log"), { code: "EIO" });
}
