/** Notable events with the time since the start, for a log or for the last lines of a view. */
export class Journal {
  readonly #startedMs = performance.now();
  readonly #lines: string[] = [];
  readonly #write: (line: string) => void;

  constructor(write: (line: string) => void) {
    this.#write = write;
  }

  get elapsedMs(): number {
    return performance.now() - this.#startedMs;
  }

  note(text: string): void {
    const line = `${(this.elapsedMs / 1000).toFixed(1).padStart(6)} s  ${text}`;
    this.#lines.push(line);
    if (this.#lines.length > 100) this.#lines.shift();
    this.#write(line);
  }

  get lines(): readonly string[] {
    return this.#lines;
  }
}
