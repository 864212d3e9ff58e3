/** A frame is one line of JSON. What is longer than this is none. */
export const LONGEST_FRAME = 4 << 20;

export class FrameTooLong extends Error {}

const NEWLINE = 0x0a;

/** Puts frames together from whatever pieces the socket delivers. */
export class FrameReader {
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  constructor(
    /** May change while frames come in: whoever is not known yet has little to say. */
    public longest: number = LONGEST_FRAME,
  ) {}

  /** Every frame that the chunk completes. */
  *push(chunk: Uint8Array): Generator<string> {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      this.#keep(chunk.subarray(from, at));
      from = at + 1;
      yield this.#take();
    }
    this.#keep(chunk.subarray(from));
  }

  #keep(part: Uint8Array): void {
    this.#length += part.length;
    if (this.#length > this.longest) throw new FrameTooLong(`a frame has more than ${this.longest} bytes`);
    if (part.length > 0) this.#parts.push(part);
  }

  #take(): string {
    const text = Buffer.concat(this.#parts).toString("utf8");
    this.#parts.length = 0;
    this.#length = 0;
    return text;
  }
}

export function frame(message: object): string {
  return `${JSON.stringify(message)}\n`;
}
