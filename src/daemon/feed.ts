import type { Coordinator, LoggedEvent, Subscription } from "../coordinator/contract";

type Listener = (event: LoggedEvent) => void;

/** Events that are remembered for those who come a little later: whoever has just read the log has missed hardly any. */
const MOST_RECENT = 1_000;

/** One reader of the log for everybody who listens. It follows only while somebody does. */
export class Feed {
  readonly #listeners = new Set<Listener>();
  #following: Promise<Subscription> | null = null;
  #recent: LoggedEvent[] = [];
  /** Every event after this line is in `#recent` or has yet to come; null: nobody knows from which line on that holds. */
  #completeAfter: number | null = null;

  constructor(private readonly coordinator: Coordinator) {}

  get listeners(): number {
    return this.#listeners.size;
  }

  /** Every event after that line, or from now on. */
  async subscribe(listener: Listener, after?: number): Promise<Subscription> {
    let last = after ?? Number.NEGATIVE_INFINITY;
    let held: LoggedEvent[] | null = after === undefined ? null : [];
    const tell = (event: LoggedEvent) => {
      if (event.sequence <= last) return;
      last = event.sequence;
      listener(event);
    };
    // What comes while the past is read waits for its turn.
    const own: Listener = (event) => {
      if (held === null) tell(event);
      else held.push(event);
    };
    this.#listeners.add(own);
    try {
      await this.#follow();
      if (after !== undefined) for await (const event of this.#since(after)) tell(event);
    } catch (error) {
      this.#leave(own);
      throw error;
    }
    for (const event of held ?? []) tell(event);
    held = null;
    return { close: () => this.#leave(own) };
  }

  close(): void {
    this.#listeners.clear();
    this.#stop();
  }

  async #follow(): Promise<void> {
    this.#following ??= this.coordinator.watch((event) => this.#hear(event));
    const following = this.#following;
    try {
      await following;
    } catch (error) {
      // The next one who comes tries again.
      if (this.#following === following) this.#following = null;
      throw error;
    }
  }

  /** What was logged after that line: remembered, or else read once more. */
  async *#since(after: number): AsyncGenerator<LoggedEvent> {
    if (this.#completeAfter !== null && after >= this.#completeAfter) {
      yield* [...this.#recent];
      return;
    }
    const followedBy = this.#following;
    let last = after;
    for await (const event of this.coordinator.history({ from: { sequence: after + 1 } })) {
      last = Math.max(last, event.sequence);
      yield event;
    }
    // It was followed before this was read: whatever is not in what was read is heard.
    if (this.#following === followedBy) this.#completeAfter ??= last;
  }

  #hear(event: LoggedEvent): void {
    this.#recent.push(event);
    if (this.#recent.length > 2 * MOST_RECENT) {
      const forgotten = this.#recent.splice(0, MOST_RECENT).at(-1)!;
      this.#completeAfter = Math.max(this.#completeAfter ?? 0, forgotten.sequence);
    }
    for (const listener of [...this.#listeners]) listener(event);
  }

  #leave(listener: Listener): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size === 0) this.#stop();
  }

  #stop(): void {
    void this.#following?.then(
      (subscription) => subscription.close(),
      () => {},
    );
    this.#following = null;
    this.#recent = [];
    this.#completeAfter = null;
  }
}
