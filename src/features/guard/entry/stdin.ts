import * as fs from "node:fs";
import { isTty } from "../../../cli/terminal/terminal";
import type { HookInput } from "../report";

/** More than any edit, and less than what would keep the machine busy. */
const LARGEST_INPUT = 64 << 20;

/**
 * All of standard input, at once and without streams, which take longer to load than a check takes. A harness that keeps
 * the pipe open is given so long to go on. It can be read only once.
 */
export function readHookInput(): HookInput {
  if (isTty(0)) return { text: null, why: "nobody but a person is there to say something" };
  const fd = withoutBlocking();
  try {
    return readFrom(fd);
  } finally {
    if (fd !== 0) fs.closeSync(fd);
  }
}

/**
 * Whoever opens a pipe and then says nothing must not keep us for ever. A socket can only be read as it is: there the
 * harness's own limit counts.
 */
function withoutBlocking(): number {
  try {
    if (process.platform !== "linux" || !fs.fstatSync(0).isFIFO()) return 0;
    return fs.openSync("/proc/self/fd/0", fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
  } catch {
    return 0;
  }
}

function readFrom(fd: number): HookInput {
  const chunks: Buffer[] = [];
  let size = 0;
  const chunk = Buffer.allocUnsafe(64 << 10);
  for (let waited = 0; ; ) {
    try {
      const read = fs.readSync(fd, chunk, 0, chunk.length, null);
      if (read === 0) break;
      waited = 0;
      size += read;
      if (size > LARGEST_INPUT) return { text: null, why: `it has more than ${LARGEST_INPUT} bytes` };
      chunks.push(Buffer.from(chunk.subarray(0, read)));
      // A harness that does not close the pipe must not keep us: a whole document is all that can come.
      const whole = read < chunk.length ? wholeDocument(chunks) : null;
      if (whole !== null) return whole;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EOF") break;
      if (code !== "EAGAIN") return { text: null, why: String(code ?? error) };
      if (waited > MOST_SILENCE_MS)
        return { text: null, why: `nothing came for ${MOST_SILENCE_MS / 1000} s, and the end neither` };
      // Its writer is on the way.
      const pauseMs = waited < 100 ? 1 : 20;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs);
      waited += pauseMs;
    }
  }
  return { text: Buffer.concat(chunks).toString("utf8") };
}

/** Null as long as more has to come. */
function wholeDocument(chunks: readonly Buffer[]): { readonly document: unknown } | null {
  const text = Buffer.concat(chunks).toString("utf8").trimEnd();
  if (!text.endsWith("}")) return null;
  try {
    return { document: JSON.parse(text) };
  } catch {
    return null;
  }
}

const MOST_SILENCE_MS = 5_000;
