import type * as http from "node:http";

/** Of every answer. */
export const SAFE = { "cache-control": "no-store", "x-content-type-options": "nosniff" } as const;

/** How often a client is told that there will be an answer. It leaves a daemon that says nothing for a second or two. */
const TELL_EVERY_MS = 250;
/** So long after it was last told something, a client is certainly there still. */
const CERTAIN_MS = 800;
/** Blank, and enough for curl to take it for more than a byte in a second. */
const FILL = "\n".repeat(8);

/**
 * The other side of a request that takes its time. Whether it still waits is told by writing to it: what has closed its end takes
 * nothing. No clock of the client's is needed for that, and no promise of it.
 */
export class WaitingClient {
  #timer: NodeJS.Timeout | null = null;
  #toldMs = Number.NEGATIVE_INFINITY;
  #isAlive: () => boolean = () => true;
  #hasLeft = false;
  #isOver = false;
  readonly #onLeave = new Set<() => void>();

  constructor(
    private readonly response: http.ServerResponse,
    private readonly type: string,
  ) {
    response.once("close", () => this.#leave());
  }

  /** Whether it is there; from now on it is told so every now and then. */
  async greet(): Promise<boolean> {
    this.response.writeHead(200, { ...SAFE, "content-type": this.type });
    await this.#say(FILL);
    if (this.#hasLeft) return false;
    this.#timer = setInterval(() => this.#look(), TELL_EVERY_MS);
    return true;
  }

  /** Somebody behind it whose death is its own: curl outlives the hook that has started it, and that a harness has ended. */
  standsFor(isAlive: () => boolean): void {
    this.#isAlive = isAlive;
  }

  /**
   * PROTOCOL 28: a daemon that was stopped meanwhile, or busy for too long, does not begin for somebody who may have left. Nor does
   * work that goes on after its answer, which in the program ends with the process.
   */
  isWaiting(): boolean {
    if (this.#hasLeft || this.#isOver) return false;
    return performance.now() - this.#toldMs < CERTAIN_MS && this.#isAlive();
  }

  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** Answers what takes it back. */
  onLeave(act: () => void): () => void {
    if (this.#hasLeft) act();
    else this.#onLeave.add(act);
    return () => this.#onLeave.delete(act);
  }

  /** A line that it may show to people at once. */
  tell(line: string): void {
    void this.#say(`${line}\n`);
  }

  finish(body: string): void {
    this.#isOver = true;
    if (!this.#hasLeft) this.response.end(body);
  }

  close(): void {
    this.#isOver = true;
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  #look(): void {
    if (this.#isAlive()) void this.#say(FILL);
    else this.response.destroy();
  }

  #say(text: string): Promise<void> {
    return new Promise((resolve) => {
      if (this.#hasLeft || this.response.destroyed) return resolve();
      const saidMs = performance.now();
      this.response.write(text, (error) => {
        if (error == null) this.#toldMs = Math.max(this.#toldMs, saidMs);
        else this.#leave();
        resolve();
      });
    });
  }

  #leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    if (this.#isOver) return;
    for (const act of this.#onLeave) act();
    this.#onLeave.clear();
  }
}
