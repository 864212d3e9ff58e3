import * as fs from "node:fs";
import { join } from "node:path";

/** The lines of a file that grows, each once it is whole: a torn end may yet be cut off and written anew. */
export class GrowingFile {
  #offset = 0;

  /** What came since the last call. A file that is not there yet has nothing to say. */
  read(path: string): string[] {
    const fd = openOrNull(path);
    if (fd === null) return [];
    try {
      return this.readFrom(fd);
    } finally {
      fs.closeSync(fd);
    }
  }

  readFrom(fd: number): string[] {
    const { size } = fs.fstatSync(fd);
    const bytes = Buffer.alloc(Math.max(0, size - this.#offset));
    const got = fs.readSync(fd, bytes, 0, bytes.length, this.#offset);
    const whole = bytes.subarray(0, got).lastIndexOf(10) + 1;
    this.#offset += whole;
    return whole === 0 ? [] : bytes.toString("utf8", 0, whole - 1).split("\n");
  }
}

/** The log through its rotations: segment after segment, however many pass between two looks. */
export class LogFiles {
  readonly #control: string;
  #segment = 1;
  #file = new GrowingFile();

  constructor(controlDirectory: string) {
    this.#control = controlDirectory;
  }

  get segments(): number {
    return this.#segment;
  }

  read(): string[] {
    const lines: string[] = [];
    for (;;) {
      const closed = this.#isClosed();
      // A closed segment is linked into the archive before the next one takes its name: one that is not there
      // after we have opened the log's name is the one we opened.
      const current = openOrNull(join(this.#control, "claims.jsonl"));
      const archived = openOrNull(this.#archived());
      try {
        const fd = archived ?? current;
        if (fd !== null) lines.push(...this.#file.readFrom(fd));
      } finally {
        for (const fd of [current, archived]) if (fd !== null) fs.closeSync(fd);
      }
      if (!closed) return lines;
      this.#segment++;
      this.#file = new GrowingFile();
    }
  }

  /** In the archive and no longer under the log's name: nothing can be added to it. */
  #isClosed(): boolean {
    const [archived, current] = [this.#archived(), join(this.#control, "claims.jsonl")].map((path) =>
      fs.statSync(path, { throwIfNoEntry: false }),
    );
    return archived !== undefined && archived.ino !== current?.ino;
  }

  #archived(): string {
    return join(this.#control, "archive", `claims-${String(this.#segment).padStart(6, "0")}.jsonl`);
  }
}

/** The number of the log's last whole line. Exact only for a caller inside the critical section. */
export function lastSequence(controlDirectory: string): number {
  const fd = fs.openSync(join(controlDirectory, "claims.jsonl"), "r");
  try {
    const { size } = fs.fstatSync(fd);
    for (let length = 8192; ; length *= 4) {
      const tail = Buffer.alloc(Math.min(length, size));
      fs.readSync(fd, tail, 0, tail.length, size - tail.length);
      const whole = tail.subarray(0, tail.lastIndexOf(10) + 1).toString("latin1");
      const start = whole.lastIndexOf("\n", whole.length - 2);
      if (start === -1 && tail.length < size) continue;
      return (JSON.parse(whole.slice(start + 1)) as { sequence: number }).sequence;
    }
  } finally {
    fs.closeSync(fd);
  }
}

function openOrNull(path: string): number | null {
  try {
    return fs.openSync(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
