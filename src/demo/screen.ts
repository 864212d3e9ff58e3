import type { Size } from "./view";

const HIDE = "\x1b[?25l";
const SHOW = "\x1b[?25h";
const CLEAR_LINE = "\x1b[K";
const CLEAR_BELOW = "\x1b[J";
const HOME = "\x1b[H\x1b[2J";

/** Redraws some lines in place on a terminal, and leaves it as it was found. */
export class Screen {
  readonly #out: NodeJS.WriteStream;
  #height = 0;
  readonly #resized = () => {
    // Lines may have been wrapped: where ours begin is anybody's guess.
    this.#out.write(HOME);
    this.#height = 0;
  };
  readonly #restore = () => {
    this.#out.write(SHOW);
  };

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
    out.on("resize", this.#resized);
    // Also when something fails that nobody thought of.
    process.on("exit", this.#restore);
    out.write(HIDE);
  }

  get size(): Size {
    return { columns: this.#out.columns ?? 80, rows: this.#out.rows ?? 24 };
  }

  show(lines: readonly string[]): void {
    const up = this.#height > 0 ? `\x1b[${this.#height}A` : "";
    this.#out.write(`${up}\r${lines.map((line) => `${line}${CLEAR_LINE}\n`).join("")}${CLEAR_BELOW}`);
    this.#height = lines.length;
  }

  /** The lines are gone, the cursor is back. */
  close(): void {
    this.show([]);
    this.#out.off("resize", this.#resized);
    process.off("exit", this.#restore);
    this.#restore();
  }
}
