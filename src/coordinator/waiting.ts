import { CotenantError } from "../errors/cotenant-error";
import { instantOf, later } from "../kernel/time";
import type { LogActor } from "../store/envelope";
import type { Outcome, Store } from "../store/store";
import type { Place } from "../store/turnstile";
import type { Wait } from "./contract";

/** Liveness raises no event, so everybody who waits looks again this often. */
const LOOK_EVERY_MS = 1_000;
/**
 * A busy log wakes everybody for everything. Whoever is next looks soon again, the others the later the more there are
 * before them: else the whole queue is in the way of the one who is served.
 */
const NEXT_RESTS_MS = 2;
const REST_PER_PLACE_MS = 15;
const REST_AT_MOST_MS = 250;

/** What a look without the mutex tells a waiter. */
export interface Look {
  /** `settled`: it would be granted now, or refused for something that waiting does not cure. */
  readonly state: "settled" | "held" | "queued";
  /** How many are served before it now, and what it waits for, in words. */
  readonly ahead: number;
  readonly message: string;
  readonly nextExpiryMs: number | null;
}

/**
 * Waits in the queue until `submit` is granted or the time is up. The watch is armed before each look, so
 * that nothing that happens between the look and the sleep is missed.
 */
export async function waitForTurn(
  store: Store,
  actor: LogActor,
  wait: Wait,
  submit: (place: Place) => Promise<Outcome>,
  peek: (place: Place) => Promise<Look>,
): Promise<{ outcome: Outcome; waitedMs: number }> {
  const { timers, clock } = store.platform;
  const startedMs = clock.monotonicMs();
  const waitedMs = () => clock.monotonicMs() - startedMs;
  await store.prepare();
  const bell = new Bell(store, wait.signal);
  let place: Place = { until: later(instantOf(store.now()), wait.timeoutMs), ticket: null, ahead: 0 };
  let isQueued = false;
  try {
    for (;;) {
      const outcome = await submit(place);
      const submittedMs = waitedMs();
      isQueued = !outcome.done && outcome.queue !== null;
      if (outcome.done || outcome.queue === null) return { outcome, waitedMs: submittedMs };
      const moved = place.ticket === null || outcome.queue.ahead !== place.ahead;
      if (moved) wait.onWait?.({ ahead: outcome.queue.ahead, message: outcome.refusal.message });
      place = outcome.queue;
      for (;;) {
        if (wait.signal?.aborted === true || waitedMs() >= wait.timeoutMs)
          throw gaveUp(place, outcome.refusal.message, waitedMs());
        bell.reset();
        const lookedMs = waitedMs();
        const look = await peek(place);
        if (look.state === "settled") break;
        if (look.ahead !== place.ahead) {
          place = { ...place, ahead: look.ahead };
          wait.onWait?.({ ahead: look.ahead, message: look.message });
        }
        // Behind somebody who may be stopped: whoever holds the mutex keeps the clock of their turn.
        if (look.state === "queued" && waitedMs() - submittedMs >= LOOK_EVERY_MS) break;
        const untilExpiryMs = look.nextExpiryMs === null ? LOOK_EVERY_MS : look.nextExpiryMs + 1;
        await bell.sleep(Math.min(LOOK_EVERY_MS, untilExpiryMs, Math.max(1, wait.timeoutMs - waitedMs())));
        const nextLookMs = Math.min(lookedMs + restMs(look.ahead), wait.timeoutMs);
        if (nextLookMs > waitedMs()) await timers.sleep(nextLookMs - waitedMs()).done;
      }
    }
  } finally {
    bell.close();
    // Whatever ended the wait: a ticket that nobody waits with would hold up those behind it. If it cannot be
    // given back, it loses its place by itself.
    if (isQueued) await store.leaveQueue(place, actor).catch(() => {});
  }
}

function restMs(ahead: number): number {
  return ahead === 0 ? NEXT_RESTS_MS : Math.min(ahead * REST_PER_PLACE_MS, REST_AT_MOST_MS);
}

/** Rings when the log or the queue changes, or the caller has had enough; a ring between `reset` and `sleep` is not lost. */
class Bell {
  readonly #store: Store;
  readonly #watches: { close(): void }[];
  #rung = false;
  #wake: () => void = () => {};

  constructor(store: Store, signal: AbortSignal | undefined) {
    this.#store = store;
    const ring = () => {
      this.#rung = true;
      this.#wake();
    };
    const { root, queue } = store.layout;
    this.#watches = [root, queue].map((path) => store.platform.timers.watchDirectory(path, ring));
    signal?.addEventListener("abort", ring);
    this.#watches.push({ close: () => signal?.removeEventListener("abort", ring) });
  }

  reset(): void {
    this.#rung = false;
  }

  async sleep(ms: number): Promise<void> {
    if (this.#rung) return;
    const sleep = this.#store.platform.timers.sleep(ms);
    this.#wake = sleep.wake;
    await sleep.done;
    this.#wake = () => {};
  }

  close(): void {
    for (const watch of this.#watches) watch.close();
  }
}

function gaveUp(place: Place, message: string, waitedMs: number): CotenantError {
  const position = place.ahead + 1;
  return new CotenantError(
    "E_WAIT_TIMEOUT",
    `waited ${Math.round(waitedMs / 1000)} s as number ${position} in the queue: ${message}`,
    {
      data: { position, waited_secs: Math.round(waitedMs / 1000) },
    },
  );
}
