import type { Ulid } from "../../kernel/ids";
import { DamagedCopy, type LedgerCopy } from "./copy";
import type { GitRemote } from "./git-remote";
import { idsOf } from "./record";
import type { ClaimRef, ClaimUpdate, LedgerRemote, MadeUpdate, PushOutcome, RemoteClaims } from "./remote";

/** Runs an operation that is safe to repeat; if the copy turns out to be damaged, replaces it and runs once more. */
export async function mending<T>(
  copy: LedgerCopy,
  warn: (warning: string) => void,
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof DamagedCopy)) throw error;
    await putAside(copy, warn, error);
    return act();
  }
}

async function putAside(
  copy: LedgerCopy,
  warn: (warning: string) => void,
  error: DamagedCopy,
): Promise<void> {
  const aside = await copy.replace();
  warn(`${error.message}; it was made anew${aside === null ? "" : `, the old one is ${aside}`}`);
}

/** A damaged copy is put aside and made anew, once, and what was asked is asked again. */
export class MendingRemote implements LedgerRemote {
  readonly #remote: GitRemote;
  readonly #warn: (warning: string) => void;

  constructor(remote: GitRemote, warn: (warning: string) => void) {
    this.#remote = remote;
    this.#warn = warn;
  }

  look(ids: readonly Ulid[] | "all"): Promise<RemoteClaims> {
    return this.#mended(() => this.#remote.look(ids));
  }

  recall(ids: readonly Ulid[]): Promise<RemoteClaims | null> {
    return this.#mended(() => this.#remote.recall(ids));
  }

  make(updates: readonly ClaimUpdate[]): Promise<readonly MadeUpdate[]> {
    return this.#mended(
      () => this.#remote.make(updates),
      // What the claims go on from must be there again first.
      async () => void (await this.#remote.look(idsOf(updates))),
    );
  }

  push(updates: readonly MadeUpdate[], isAtomic: boolean): Promise<readonly PushOutcome[]> {
    return this.#mended(
      () => this.#remote.push(updates, isAtomic),
      async () => {
        await this.#remote.look(idsOf(updates));
        await this.#remote.commit(updates);
      },
    );
  }

  seen(ids: readonly Ulid[] | "all"): Promise<ReadonlyMap<Ulid, ClaimRef>> {
    return this.#mended(() => this.#remote.seen(ids));
  }

  async settle(): Promise<void> {
    try {
      await this.#remote.settle();
    } catch {
      // Nothing depends on it.
    }
  }

  async #mended<T>(act: () => Promise<T>, prepare: () => Promise<void> = async () => {}): Promise<T> {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof DamagedCopy)) throw error;
      await putAside(this.#remote.copy, this.#warn, error);
      await prepare();
      return act();
    }
  }
}
