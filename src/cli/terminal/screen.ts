import type { Terminal } from "./terminal";

const OPEN = "\x1b[?1049h\x1b[?25l";
const CLOSE = "\x1b[?25h\x1b[?1049l";
const HOME = "\x1b[H";
const CLEAR_LINE = "\x1b[K";
const CLEAR_BELOW = "\x1b[J";

/** Of a terminal that says nothing of its size, or that it has none, as some do before a window is drawn. */
export function sizeOf({ columns, rows }: { readonly columns?: number; readonly rows?: number }): {
  readonly columns: number;
  readonly rows: number;
} {
  return { columns: columns || 80, rows: rows || 24 };
}

/** A screen of our own on a terminal. Whatever happens, the terminal is given back as it was found. */
export class OwnScreen {
  readonly #terminal: Terminal;
  readonly #restore = () => void this.#terminal.out(CLOSE);

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    process.on("exit", this.#restore);
    terminal.out(OPEN);
  }

  /** False when nobody looks any more. */
  show(lines: readonly string[], rows: number): boolean {
    const fitting = lines.length <= rows ? lines : [...lines.slice(0, Math.max(0, rows - 1)), "…"];
    return this.#terminal.out(
      `${HOME}${fitting.map((line) => `${line}${CLEAR_LINE}`).join("\n")}${CLEAR_BELOW}`,
    );
  }

  close(): void {
    process.off("exit", this.#restore);
    this.#restore();
  }
}

const COLOUR = /\x1b\[[\d;]*m/g;

/** At most `width` characters that are seen; colours take no room, and are still ended. */
export function cutTo(line: string, width: number): string {
  if (line.replace(COLOUR, "").length <= width) return line;
  let room = width - 1;
  let cut = "";
  for (const [piece] of line.matchAll(/\x1b\[[\d;]*m|[\s\S]/g)) {
    if (piece.length > 1) cut += piece;
    else if (room > 0) cut += piece;
    else if (room === 0) cut += "…";
    if (piece.length === 1) room--;
  }
  return cut;
}
