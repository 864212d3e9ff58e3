import type { Coordinator, LoggedEvent, Subscription } from "../coordinator/contract";

type Listener = (event: LoggedEvent) => void;

/** One reader of the log for everybody who listens. It follows only while somebody does. */
export class Feed {
  readonly #coordinator: Coordinator;
  readonly #listeners = new Set<Listener>();
  #following: Promise<Subscription> | null = null;
  #last = 0;

  constructor(coordinator: Coordinator) {
    this.#coordinator = coordinator;
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
    this.#following ??= this.#coordinator.watch((event) => this.#hear(event));
    await this.#following;
    if (after !== undefined && this.#last !== after) {
      for await (const event of this.#coordinator.history({ from: { sequence: after + 1 } })) tell(event);
    }
    for (const event of held ?? []) tell(event);
    held = null;
    return { close: () => this.#leave(own) };
  }

  close(): void {
    this.#listeners.clear();
    this.#stop();
  }

  #hear(event: LoggedEvent): void {
    this.#last = event.sequence;
    for (const listener of [...this.#listeners]) listener(event);
  }

  #leave(listener: Listener): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size === 0) this.#stop();
  }

  #stop(): void {
    void this.#following?.then((subscription) => subscription.close());
    this.#following = null;
  }
}
