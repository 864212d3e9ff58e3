import { CotenantError, during } from "../errors/cotenant-error";
import type { Ticket } from "../kernel/tickets";
import { type Instant, instantOf, later } from "../kernel/time";
import { Predecessors } from "../store/predecessors";
import { sameTicket } from "../store/queue";
import type { Place } from "../store/queue-admission";
import type { Store } from "../store/store";
import type { Outcome } from "../store/submission";
import type { Wait } from "./contract";
import type { QueueLook, Why } from "./queue-look";

/**
 * PROTOCOL 15. Whoever frees something marks the tickets of those whose turn it is. Deaths raise no event and a wake-up may
 * be lost, so that each waiter also looks at the one before it this often, ...
 */
const LOOK_EVERY_MS = 1_000;
/** ... and at everything this often; the first in line every time, for nobody is before it. */
const LOOK_AT_ALL_MS = 5_000;
/** Without a watch the ticket is read again and again, the oftener the fewer are served before. */
const POLL_AT_LEAST_MS = 25;
const POLL_AT_MOST_MS = 250;

/** What a waiter does with the store. */
export interface Attempts {
  /** Asks to be granted, or for a place in the queue. */
  readonly submit: (place: Place) => Promise<Outcome>;
  readonly look: (mine: Ticket, before: Predecessors) => Promise<QueueLook>;
  /** Why it still waits, for whoever gives up. */
  readonly explain: (mine: Ticket) => Promise<Why>;
  readonly leave: (place: Place) => Promise<void>;
}

/** Waits in the queue until `submit` is granted or the time is up. */
export async function waitForTurn(
  store: Store,
  asked: Wait,
  { submit, look, explain, leave }: Attempts,
): Promise<{ outcome: Outcome; waitedMs: number }> {
  const wait = tellingOnce(asked);
  const time = new WaitingTime(store, wait);
  await store.prepare();
  let place: Place = { until: later(instantOf(store.now()), wait.timeoutMs), ticket: null, ahead: 0 };
  let vigil: Vigil | null = null;
  try {
    for (;;) {
      const outcome = await patiently(() => submit(place), place, time);
      if (outcome.done || outcome.queue === null) {
        place = { ...place, ticket: null };
        return { outcome, waitedMs: time.waitedMs() };
      }
      const isElsewhere = place.ticket === null || !sameTicket(outcome.queue.ticket!, place.ticket);
      if (isElsewhere || outcome.queue.ahead !== place.ahead)
        wait.onWait?.({ ahead: outcome.queue.ahead, message: outcome.refusal.message });
      place = outcome.queue;
      if (isElsewhere || vigil === null) {
        vigil?.end();
        vigil = new Vigil(store, place.ticket!, look, wait);
      }
      const ahead = await vigil.keep(place.ahead, time);
      // Anew: by another's clock, and with this one set ahead since, a ticket with the old instant would be over at once.
      place = { ...place, ahead, until: later(instantOf(store.now()), time.leftMs()) };
      if (time.isUp()) throw gaveUp(place, await lastWord(place, outcome, time, explain), time);
    }
  } finally {
    vigil?.end();
    // Whatever ended the wait: a ticket that nobody waits with would hold up those behind it. If it cannot be
    // given back, it loses its place by itself.
    if (place.ticket !== null) await leave(place).catch(() => {});
  }
}

/** Whoever lost its ticket and took its place again is where it was: nothing new to tell. */
function tellingOnce(wait: Wait): Wait {
  const { onWait } = wait;
  if (onWait === undefined) return wait;
  let last = "";
  return {
    ...wait,
    onWait: (place) => {
      const said = `${place.ahead} ${place.message}`;
      if (said !== last) onWait(place);
      last = said;
    },
  };
}

class WaitingTime {
  readonly #startedMs: number;

  constructor(
    private readonly store: Store,
    private readonly wait: Wait,
  ) {
    this.#startedMs = store.platform.clock.monotonicMs();
  }

  waitedMs(): number {
    return this.store.platform.clock.monotonicMs() - this.#startedMs;
  }

  leftMs(): number {
    return this.isInterrupted ? 0 : this.wait.timeoutMs - this.waitedMs();
  }

  get isInterrupted(): boolean {
    return this.wait.signal?.aborted === true;
  }

  isUp(): boolean {
    return this.leftMs() <= 0;
  }
}

/** Whoever waits for a lease may as well wait for the mutex: a busy store ends no wait before its time. */
async function patiently(submit: () => Promise<Outcome>, place: Place, time: WaitingTime): Promise<Outcome> {
  for (;;) {
    try {
      return await submit();
    } catch (error) {
      const isBusy =
        error instanceof CotenantError && error.code === "E_STORE_BUSY" && "holder" in error.data;
      if (!isBusy) throw error;
      if (time.isUp()) throw gaveUp(place, { message: error.message, data: {} }, time);
    }
  }
}

/** One waiter with one ticket: sleeps until there is a reason to ask again. */
class Vigil {
  readonly #before: Predecessors;
  readonly #look: () => Promise<QueueLook>;
  readonly #bell: Bell;
  /** The mark that was the reason last time: it is none for another attempt. */
  #answered: Instant | null = null;
  #calls = 0;
  #calledMs = Number.NEGATIVE_INFINITY;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #lookedAtAllMs = Number.NEGATIVE_INFINITY;
  #untilExpiryMs: number | null = null;

  constructor(
    private readonly store: Store,
    mine: Ticket,
    look: Attempts["look"],
    private readonly wait: Wait,
  ) {
    this.#before = new Predecessors(store.queue, mine);
    this.#look = () => look(mine, this.#before);
    this.#bell = new Bell(store, store.queue.path(mine.number), wait.signal);
  }

  /** Until it may go, has lost its place, or the time is up. Answers how many are before it. */
  async keep(placesAhead: number, time: WaitingTime): Promise<number> {
    return during("reading the queue", this.store.layout.queue, () => this.#keep(placesAhead, time));
  }

  async #keep(placesAhead: number, time: WaitingTime): Promise<number> {
    let ahead = placesAhead;
    while (!time.isUp()) {
      // Armed before the ticket is read, so that nothing that happens between that and the sleep is missed.
      this.#bell.arm();
      const restMs = this.#restMs(time.waitedMs());
      if (restMs <= 0 && (await this.#isCalled(time.waitedMs()))) return ahead;
      if (await this.#isLookDue(ahead, time.waitedMs())) {
        const look = await this.#look();
        this.#lookedAtAllMs = this.#lookedMs = time.waitedMs();
        if (look.state !== "waiting") return look.ahead;
        if (look.ahead !== ahead) this.wait.onWait?.({ ahead: look.ahead, message: look.message });
        ahead = look.ahead;
        this.#untilExpiryMs = ahead === 0 ? look.nextExpiryMs : null;
      }
      const pollMs = Math.min(Math.max(POLL_AT_LEAST_MS, ahead), POLL_AT_MOST_MS);
      const atMostMs = this.#bell.isArmed ? LOOK_EVERY_MS : pollMs;
      const expiryMs = this.#untilExpiryMs === null ? atMostMs : this.#untilExpiryMs + 1;
      const untilCalledMs = restMs > 0 ? restMs : atMostMs;
      await this.#bell.sleep(Math.min(atMostMs, untilCalledMs, expiryMs, Math.max(1, time.leftMs())));
    }
    return ahead;
  }

  end(): void {
    this.#bell.close();
  }

  /** Marked, by whoever freed what it waits for; or without a place any more. */
  async #isCalled(nowMs: number): Promise<boolean> {
    const mine = await this.#before.mine();
    if (mine === null) return true;
    if (mine.freeSince === null || mine.freeSince.monotonicMs === this.#answered?.monotonicMs) return false;
    this.#answered = mine.freeSince;
    this.#calls++;
    this.#calledMs = nowMs;
    return true;
  }

  /**
   * How long no call is answered. Whoever called in vain sees a holder as dead that cannot be seen from here, as from
   * another container, and an answer makes it call again: the two would go on like that, and leave nobody else any time.
   */
  #restMs(nowMs: number): number {
    if (this.#calls === 0) return 0;
    return this.#calledMs + Math.min(POLL_AT_LEAST_MS * 2 ** (this.#calls - 1), LOOK_EVERY_MS) - nowMs;
  }

  async #isLookDue(ahead: number, nowMs: number): Promise<boolean> {
    if (nowMs - this.#lookedAtAllMs >= (ahead === 0 ? LOOK_EVERY_MS : LOOK_AT_ALL_MS)) return true;
    if (this.#untilExpiryMs !== null && nowMs - this.#lookedAtAllMs > this.#untilExpiryMs) return true;
    if (nowMs - this.#lookedMs < LOOK_EVERY_MS) return false;
    this.#lookedMs = nowMs;
    return !(await this.#before.isNearestWaiting(this.store.now()));
  }
}

/** Rings when the ticket changes, or the caller has had enough; a ring between `arm` and `sleep` is not lost. */
class Bell {
  #watch: { close(): void } | null = null;
  #rung = true;
  #wake: () => void = () => {};

  constructor(
    private readonly store: Store,
    private readonly path: string,
    private readonly signal: AbortSignal | undefined,
  ) {
    signal?.addEventListener("abort", this.#ring);
  }

  get isArmed(): boolean {
    return this.#watch !== null;
  }

  /** After a ring anew: the name may stand for another file by now. Watches that had run out may be back. */
  arm(): void {
    if (!this.#rung && this.#watch !== null) return;
    this.#watch?.close();
    this.#rung = false;
    this.#watch = this.store.platform.timers.watchFile(this.path, this.#ring);
  }

  async sleep(ms: number): Promise<void> {
    if (this.#rung) return;
    const sleep = this.store.platform.timers.sleep(ms);
    this.#wake = sleep.wake;
    await sleep.done;
    this.#wake = () => {};
  }

  close(): void {
    this.#watch?.close();
    this.signal?.removeEventListener("abort", this.#ring);
  }

  readonly #ring = (): void => {
    this.#rung = true;
    this.#wake();
  };
}

/** Who is in the way now: those who were when the wait began may be gone long since. */
async function lastWord(
  { ticket }: Place,
  { refusal }: Extract<Outcome, { done: false }>,
  time: WaitingTime,
  explain: Attempts["explain"],
): Promise<Why> {
  const first = { message: refusal.message, data: {} };
  if (ticket === null || time.isInterrupted) return first;
  // The wait is over either way: a look that fails changes nothing about that.
  return explain(ticket).catch(() => first);
}

/** What was left when it asked last; the instant beside it is still true. */
const SECONDS_THEN = / \(\d+ s left\)$/;

function gaveUp(place: Place, why: Why, time: WaitingTime): CotenantError {
  const position = place.ahead + 1;
  const waitedSecs = Math.round(time.waitedMs() / 1000);
  const data = { position, waited_secs: waitedSecs };
  return time.isInterrupted
    ? new CotenantError(
        "E_INTERRUPTED",
        `interrupted after ${waitedSecs} s as number ${position} in the queue; the place is given up`,
        { data },
      )
    : new CotenantError(
        "E_WAIT_TIMEOUT",
        `waited ${waitedSecs} s as number ${position} in the queue: ${why.message.replace(SECONDS_THEN, "")}`,
        { hint: why.hint, data: { ...data, ...why.data } },
      );
}
