import type { Descriptor, Platform } from "../platform/platform";
import { decodeLine, type Line } from "../store/envelope";
import type { Layout } from "../store/layout";
import { archivedSegments } from "../store/segments";

/** Where to begin: after a line, or at a time. */
export interface Beginning {
  readonly after: number;
  readonly sinceMs: number | null;
}

export const FROM_THE_FIRST: Beginning = { after: 0, sinceMs: null };

/**
 * Every segment that can hold lines from `beginning` on, oldest first; each gives its whole lines in batches, so that
 * no segment is ever in memory as objects. The log is opened before the archive is listed: whatever is rotated out of
 * it meanwhile is still at hand, and whatever was before is in the archive.
 */
export async function openSegments(
  platform: Platform,
  layout: Layout,
  beginning: Beginning,
): Promise<{ readonly segments: readonly Segment[]; close(): Promise<void> }> {
  const { files } = platform;
  const log = (await files.stat(layout.log)) === null ? null : await files.open(layout.log, "read");
  const close = async () => {
    if (log !== null) await files.close(log);
  };
  try {
    const names = await archivedSegments(files, layout);
    const archived = names.map((name) => new Segment(platform, `${layout.archive}/${name}`, null));
    const all = log === null ? archived : [...archived, new Segment(platform, layout.log, log)];
    return { segments: await thoseFrom(all, beginning), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Goes back until a segment begins before the wanted line. A clock that was set back may hide a few lines by time. */
async function thoseFrom(
  all: readonly Segment[],
  { after, sinceMs }: Beginning,
): Promise<readonly Segment[]> {
  if (after === 0 && sinceMs === null) return all;
  for (let at = all.length - 1; at > 0; at--) {
    const first = await all[at]!.first();
    if (first === null) continue;
    if (first.sequence <= after + 1 && sinceMs === null) return all.slice(at);
    if (sinceMs !== null && Date.parse(first.timestamp) < sinceMs) return all.slice(at);
  }
  return all;
}

const CHUNK = 1 << 20;

/** One file of the log: the current one, or an archived one, packed or not. */
export class Segment {
  readonly #platform: Platform;
  readonly #path: string;
  readonly #fd: Descriptor | null;
  /** Whether there was something in it that is no whole line. What a writer is at work on does not count. */
  isDamaged = false;

  constructor(platform: Platform, path: string, fd: Descriptor | null) {
    this.#platform = platform;
    this.#path = path;
    this.#fd = fd;
  }

  get path(): string {
    return this.#path;
  }

  /** Its first whole line. */
  async first(): Promise<Line | null> {
    for await (const batch of this.batches()) if (batch.length > 0) return batch[0]!;
    return null;
  }

  /** Whole lines, in order. What is torn or altered is passed over. */
  async *batches(): AsyncGenerator<readonly Line[]> {
    const decoder = new TextDecoder();
    let rest: Uint8Array = new Uint8Array(0);
    for await (const chunk of this.#chunks()) {
      const bytes = rest.length === 0 ? chunk : joined(rest, chunk);
      const end = bytes.lastIndexOf(10) + 1;
      rest = bytes.slice(end);
      if (end > 0) yield this.#whole(decoder.decode(bytes.subarray(0, end)));
    }
  }

  #whole(text: string): Line[] {
    const lines: Line[] = [];
    for (const lineText of text.split("\n")) {
      const line = lineText === "" ? null : decodeLine(this.#platform.digest, lineText);
      if (line !== null) lines.push(line);
      else if (lineText !== "") this.isDamaged = true;
    }
    return lines;
  }

  async *#chunks(): AsyncGenerator<Uint8Array> {
    const { files } = this.#platform;
    const isPacked = this.#path.endsWith(".gz");
    const fd = this.#fd ?? (isPacked ? null : await this.#open());
    if (fd === null) {
      yield* this.#unpacked(isPacked ? this.#path : `${this.#path}.gz`);
      return;
    }
    try {
      for (let at = 0; ; ) {
        const chunk = await files.read(fd, at, CHUNK);
        if (chunk.length === 0) return;
        at += chunk.length;
        yield chunk;
      }
    } finally {
      if (this.#fd === null) await files.close(fd);
    }
  }

  /** Null when it has been packed since its name was read. */
  async #open(): Promise<Descriptor | null> {
    try {
      return await this.#platform.files.open(this.#path, "read");
    } catch (error) {
      if ((error as { code?: unknown }).code === "ENOENT") return null;
      throw error;
    }
  }

  /** Nothing when it is damaged: what cannot be read is passed over, like a damaged line. */
  async *#unpacked(path: string): AsyncGenerator<Uint8Array> {
    const { files, compression } = this.#platform;
    const packed = await files.readFile(path);
    if (packed === null) return;
    let bytes: Uint8Array;
    try {
      bytes = await compression.unpack(packed);
    } catch {
      this.isDamaged = true;
      return;
    }
    for (let at = 0; at < bytes.length; at += CHUNK) yield bytes.subarray(at, at + CHUNK);
  }
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

/** What the end of a log is looked for in. */
const END_BYTES = 64 << 10;

/** The sequence of the log's last line; null where that cannot be told from its last bytes. */
export async function lastSequence({ files, digest }: Platform, log: string): Promise<number | null> {
  const fd = await files.open(log, "read");
  try {
    const { size } = await files.fstat(fd);
    const from = Math.max(0, size - END_BYTES);
    const lines = new TextDecoder().decode(await files.read(fd, from, size - from)).split("\n");
    // After the last newline is nothing, or what somebody is about to write.
    return decodeLine(digest, lines.at(-2) ?? "")?.sequence ?? null;
  } finally {
    await files.close(fd);
  }
}
