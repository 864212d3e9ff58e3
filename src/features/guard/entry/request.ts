import * as fs from "node:fs";
import { isTty } from "../../../cli/terminal/terminal";
import type { Input } from "../run";

/** More than any edit, and less than what would keep the machine busy. */
const LARGEST_INPUT = 64 << 20;

/**
 * All of standard input, at once and without streams, which take longer to load than a check takes. A harness that keeps
 * the pipe open is given so long to go on.
 */
export function readHookInput(): Input {
  const kept = holder[READ];
  if (kept !== undefined) return kept;
  const input = readAll();
  holder[READ] = input;
  return input;
}

/** It can be read only once, and a small program may hand over to a larger one in the same process. */
const READ = Symbol.for("cotenant.hook-input");
const holder = globalThis as { [READ]?: Input };

function readAll(): Input {
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

function readFrom(fd: number): Input {
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
      if (read < chunk.length && isWhole(chunks)) break;
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

function isWhole(chunks: readonly Buffer[]): boolean {
  const text = Buffer.concat(chunks).toString("utf8").trimEnd();
  if (!text.endsWith("}")) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const MOST_SILENCE_MS = 5_000;
