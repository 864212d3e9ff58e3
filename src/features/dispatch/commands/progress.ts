import type { Context } from "../../../cli/grammar/command";
import { cutTo, sizeOf } from "../../../cli/terminal/screen";
import type { DispatchEvent, RunState } from "../operations";
import { boardLines, dispatchEventJson, dispatchEventText } from "./output";

/** How a run is shown while it goes on. */
export interface Progress {
  show(event: DispatchEvent, state: RunState): void;
  close(): void;
}

/** A terminal gets a board that is drawn again and again below what has happened; whatever else reads gets a line of JSON each time. */
export function progressFor(context: Context, env: Readonly<Record<string, string | undefined>>): Progress {
  const { terminal, json, quiet } = context;
  if (!terminal.isTerminal || json) {
    const line = (event: DispatchEvent, { runId }: RunState) =>
      void terminal.out(`${JSON.stringify(dispatchEventJson(event, runId))}\n`);
    return { show: quiet && !json ? () => {} : line, close: () => {} };
  }
  if (quiet) return { show: () => {}, close: () => {} };
  return env["TERM"] === "dumb" ? plainly(context) : new Board(context);
}

function plainly({ terminal }: Context): Progress {
  return {
    show: (event) => {
      const text = dispatchEventText(event);
      if (text !== null) terminal.out(`${text}\n`);
    },
    close: () => {},
  };
}

const REDRAW_EVERY_MS = 1_000;

/** What happened scrolls by above; below it stands how things are now. */
class Board implements Progress {
  readonly #context: Context;
  #state: RunState | null = null;
  #lines = 0;
  readonly #timer: NodeJS.Timeout;

  constructor(context: Context) {
    this.#context = context;
    this.#timer = setInterval(() => this.#draw(null), REDRAW_EVERY_MS);
    this.#timer.unref();
  }

  show(event: DispatchEvent, state: RunState): void {
    this.#state = state;
    this.#draw(dispatchEventText(event));
  }

  close(): void {
    clearInterval(this.#timer);
    this.#context.terminal.out(this.#erased());
    this.#lines = 0;
  }

  #erased(): string {
    return this.#lines === 0 ? "" : `\x1b[${this.#lines}A\x1b[J`;
  }

  #draw(text: string | null): void {
    if (this.#state === null) return;
    const { terminal } = this.#context;
    const { columns, rows } = sizeOf(process.stdout);
    // A line that wraps would count as two.
    const board = boardLines(terminal, this.#state, Date.now())
      .slice(-Math.max(1, rows - 2))
      .map((line) => cutTo(line, columns - 1));
    const said = text === null ? "" : `${text}\n`;
    terminal.out(`${this.#erased()}${said}${board.join("\n")}\n`);
    this.#lines = board.length;
  }
}
