import type { Ulid } from "../kernel/ids";
import {
  type ClaimRef,
  type ClaimUpdate,
  isUnreachable,
  type LedgerRemote,
  type Look,
  type MadeUpdate,
  type PushOutcome,
} from "./remote";

interface Asked {
  readonly ids: readonly Ulid[];
  resolve(look: Look): void;
  reject(error: unknown): void;
}

interface Told {
  readonly updates: readonly MadeUpdate[];
  resolve(outcomes: readonly PushOutcome[]): void;
  reject(error: unknown): void;
}

/** So many claims in one exchange. */
const MOST = 200;

/**
 * For processes with many callers: whoever asks while an exchange is under way goes with the next one, together with
 * everybody else who came meanwhile. Nobody waits for company.
 */
export class BatchingRemote implements LedgerRemote {
  readonly #remote: LedgerRemote;
  #asked: Asked[] = [];
  #told: Told[] = [];
  #isLooking = false;
  #isPushing = false;

  constructor(remote: LedgerRemote) {
    this.#remote = remote;
  }

  look(ids: readonly Ulid[] | "all"): Promise<Look> {
    if (ids === "all") return this.#remote.look(ids);
    return new Promise((resolve, reject) => {
      this.#asked.push({ ids, resolve, reject });
      if (!this.#isLooking) void this.#lookAll();
    });
  }

  recall(ids: readonly Ulid[]): Promise<Look | null> {
    return this.#remote.recall(ids);
  }

  make(updates: readonly ClaimUpdate[]): Promise<readonly MadeUpdate[]> {
    return this.#remote.make(updates);
  }

  push(updates: readonly MadeUpdate[], isAtomic: boolean): Promise<readonly PushOutcome[]> {
    // All or none of one caller's must not be made to depend on another's.
    if (isAtomic) return this.#remote.push(updates, true);
    return new Promise((resolve, reject) => {
      this.#told.push({ updates, resolve, reject });
      if (!this.#isPushing) void this.#pushAll();
    });
  }

  seen(ids: readonly Ulid[] | "all"): Promise<ReadonlyMap<Ulid, ClaimRef>> {
    return this.#remote.seen(ids);
  }

  settle(): Promise<void> {
    return this.#remote.settle();
  }

  async #lookAll(): Promise<void> {
    this.#isLooking = true;
    while (this.#asked.length > 0) {
      const batch = fitting(this.#asked, ({ ids }) => ids.length);
      const ids = [...new Set(batch.flatMap((asked) => asked.ids))];
      try {
        const look = await this.#remote.look(ids);
        for (const { resolve } of batch) resolve(look);
      } catch (error) {
        await this.#apart(batch, error);
      }
    }
    this.#isLooking = false;
  }

  /** What is wrong with one claim is not the others' business. */
  async #apart(batch: readonly Asked[], error: unknown): Promise<void> {
    if (batch.length === 1 || isUnreachable(error)) {
      for (const { reject } of batch) reject(error);
      return;
    }
    for (const { ids, resolve, reject } of batch) {
      try {
        resolve(await this.#remote.look(ids));
      } catch (own) {
        reject(own);
      }
    }
  }

  async #pushAll(): Promise<void> {
    this.#isPushing = true;
    while (this.#told.length > 0) {
      const batch = withoutRepeats(
        fitting(this.#told, ({ updates }) => updates.length),
        this.#told,
      );
      try {
        const outcomes = [
          ...(await this.#remote.push(
            batch.flatMap(({ updates }) => updates),
            false,
          )),
        ];
        for (const { updates, resolve } of batch) resolve(outcomes.splice(0, updates.length));
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#isPushing = false;
  }
}

/** Takes the first of them off the queue, as many as go together. */
function fitting<T>(queue: T[], size: (item: T) => number): T[] {
  let total = 0;
  const count = queue.findIndex((item) => {
    total += size(item);
    return total > MOST;
  });
  return queue.splice(0, count === -1 ? queue.length : Math.max(1, count));
}

/** One ref is pushed once at a time: a second update of the same claim waits for the next turn. */
function withoutRepeats(batch: readonly Told[], queue: Told[]): Told[] {
  const taken = new Set<Ulid>();
  const kept: Told[] = [];
  const later: Told[] = [];
  for (const told of batch) {
    if (told.updates.some(({ issueId }) => taken.has(issueId))) later.push(told);
    else kept.push(told);
    for (const { issueId } of told.updates) taken.add(issueId);
  }
  queue.unshift(...later);
  return kept;
}
