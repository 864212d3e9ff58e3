import type { Ulid } from "../../kernel/ids";
import {
  type ClaimRef,
  type ClaimUpdate,
  isUnreachable,
  type LedgerRemote,
  type MadeUpdate,
  type PushOutcome,
  type RemoteClaims,
} from "./remote";

/** So many claims in one exchange. */
const MOST = 200;
/** So that whoever comes just after one has begun does not wait for all of it; a remote far away takes its time. */
const PUSHES_AT_ONCE = 2;

/**
 * For processes with many callers: whoever asks while exchanges are under way goes with the next one, together with
 * everybody else who came meanwhile. Nobody waits for company. In a process that lives on (`isLasting`) what was heard is
 * remembered after the answer.
 */
export class BatchingRemote implements LedgerRemote {
  readonly #looks: Exchanges<readonly Ulid[], RemoteClaims>;
  readonly #recalls: Exchanges<readonly Ulid[], RemoteClaims | null>;
  readonly #makes: Exchanges<readonly ClaimUpdate[], readonly MadeUpdate[]>;
  readonly #pushes: Exchanges<readonly MadeUpdate[], readonly PushOutcome[]>;
  readonly #settlements: Exchanges<null, void>;

  constructor(
    private readonly remote: LedgerRemote,
    private readonly isLasting: boolean,
  ) {
    this.#looks = new Exchanges(fitting, (batch) => this.#look(batch));
    this.#recalls = new Exchanges(fitting, (batch) => this.#recall(batch));
    this.#makes = new Exchanges(fitting, (batch) => inOneCall(batch, (all) => remote.make(all)));
    this.#pushes = new Exchanges(
      fittingOnce,
      (batch) => inOneCall(batch, (all) => remote.push(all, false)),
      PUSHES_AT_ONCE,
    );
    this.#settlements = new Exchanges(
      (queue) => queue.splice(0),
      async (batch) => {
        await remote.settle();
        for (const { resolve } of batch) resolve();
      },
    );
  }

  look(ids: readonly Ulid[] | "all"): Promise<RemoteClaims> {
    return ids === "all" ? this.remote.look(ids) : this.#looks.join(ids);
  }

  recall(ids: readonly Ulid[]): Promise<RemoteClaims | null> {
    return this.#recalls.join(ids);
  }

  make(updates: readonly ClaimUpdate[]): Promise<readonly MadeUpdate[]> {
    return this.#makes.join(updates);
  }

  push(updates: readonly MadeUpdate[], isAtomic: boolean): Promise<readonly PushOutcome[]> {
    // All or none of one caller's must not be made to depend on another's.
    return isAtomic ? this.remote.push(updates, true) : this.#pushes.join(updates);
  }

  seen(ids: readonly Ulid[] | "all"): Promise<ReadonlyMap<Ulid, ClaimRef>> {
    return this.remote.seen(ids);
  }

  settle(): Promise<void> {
    const settled = this.#settlements.join(null);
    if (!this.isLasting) return settled;
    // Nothing depends on it.
    void settled.catch(() => {});
    return Promise.resolve();
  }

  async #look(batch: Batch<readonly Ulid[], RemoteClaims>): Promise<void> {
    try {
      const look = await this.remote.look(allOf(batch));
      for (const { resolve } of batch) resolve(look);
    } catch (error) {
      if (batch.length === 1 || isUnreachable(error)) throw error;
      // What is wrong with one claim is not the others' business.
      for (const { asked, resolve, reject } of batch) await this.remote.look(asked).then(resolve, reject);
    }
  }

  async #recall(batch: Batch<readonly Ulid[], RemoteClaims | null>): Promise<void> {
    const memory = await this.remote.recall(allOf(batch));
    for (const { asked, resolve } of batch) resolve(memory === null ? null : partOf(memory, asked));
  }
}

/** One caller of an exchange: what it asks, and how it is answered. */
interface Caller<Q, A> {
  readonly asked: Q;
  resolve(answer: A): void;
  reject(error: unknown): void;
}

type Batch<Q, A> = readonly Caller<Q, A>[];

/** Exchanges of one kind, so many at once at most, each for all callers that `choose` takes off the queue. */
class Exchanges<Q, A> {
  readonly #queue: Caller<Q, A>[] = [];
  readonly #underWay = new Set<Batch<Q, A>>();
  readonly #choose: (queue: Caller<Q, A>[], underWay: Iterable<Batch<Q, A>>) => Batch<Q, A>;
  readonly #exchange: (batch: Batch<Q, A>) => Promise<void>;
  readonly #atOnce: number;

  constructor(
    choose: (queue: Caller<Q, A>[], underWay: Iterable<Batch<Q, A>>) => Batch<Q, A>,
    /** Answers each of them; where it throws, all who were not answered hear of it. */
    exchange: (batch: Batch<Q, A>) => Promise<void>,
    atOnce = 1,
  ) {
    this.#choose = choose;
    this.#exchange = exchange;
    this.#atOnce = atOnce;
  }

  join(asked: Q): Promise<A> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ asked, resolve, reject });
      // Whoever asks in the same turn goes along.
      queueMicrotask(() => this.#next());
    });
  }

  #next(): void {
    if (this.#queue.length === 0 || this.#underWay.size >= this.#atOnce) return;
    const batch = this.#choose(this.#queue, this.#underWay);
    if (batch.length === 0) return;
    this.#underWay.add(batch);
    void this.#run(batch);
  }

  async #run(batch: Batch<Q, A>): Promise<void> {
    try {
      await this.#exchange(batch);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    this.#underWay.delete(batch);
    this.#next();
  }
}

/** What one call answers for all of them, in their order, handed out to each. */
async function inOneCall<Q, A>(
  batch: Batch<readonly Q[], readonly A[]>,
  call: (asked: readonly Q[]) => Promise<readonly A[]>,
): Promise<void> {
  const answers = [...(await call(batch.flatMap(({ asked }) => asked)))];
  for (const { asked, resolve } of batch) resolve(answers.splice(0, asked.length));
}

/** Takes the first of them off the queue, as many as go together. */
function fitting<C extends Caller<readonly unknown[], never>>(queue: C[]): C[] {
  let total = 0;
  const count = queue.findIndex(({ asked }) => {
    total += asked.length;
    return total > MOST;
  });
  return queue.splice(0, count === -1 ? queue.length : Math.max(1, count));
}

/** One ref is pushed once at a time: a second update of the same claim waits for the next turn. */
function fittingOnce<C extends Caller<readonly MadeUpdate[], never>>(
  queue: C[],
  underWay: Iterable<readonly C[]>,
): C[] {
  const taken = new Set<Ulid>();
  for (const batch of underWay)
    for (const { asked } of batch) for (const { issueId } of asked) taken.add(issueId);
  const kept: C[] = [];
  const later: C[] = [];
  for (const caller of fitting(queue)) {
    const isRepeated = caller.asked.some(({ issueId }) => taken.has(issueId));
    (isRepeated ? later : kept).push(caller);
    for (const { issueId } of caller.asked) taken.add(issueId);
  }
  queue.unshift(...later);
  return kept;
}

function allOf(batch: Batch<readonly Ulid[], never>): Ulid[] {
  return [...new Set(batch.flatMap(({ asked }) => asked))];
}

function partOf({ claims, highestToken }: RemoteClaims, ids: readonly Ulid[]): RemoteClaims {
  const own = new Map([...claims].filter(([id]) => ids.includes(id)));
  return { claims: own, highestToken: own.size < ids.length ? highestToken : 0 };
}
