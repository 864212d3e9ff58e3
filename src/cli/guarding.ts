import * as fs from "node:fs";
import type { Input } from "../guard/run";
import type { World } from "../guard/world";
import { isTty } from "./terminal";

/** More than any edit, and less than what would keep the machine busy. */
const LARGEST_INPUT = 64 << 20;

/**
 * All of standard input, at once and without streams, which take longer to load than a check takes. A harness that keeps
 * the pipe open is given so long to say something.
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
  const chunks: Buffer[] = [];
  let size = 0;
  const chunk = Buffer.allocUnsafe(64 << 10);
  for (let waited = 0; ; ) {
    try {
      const read = fs.readSync(0, chunk, 0, chunk.length, null);
      if (read === 0) break;
      size += read;
      if (size > LARGEST_INPUT) return { text: null, why: `it has more than ${LARGEST_INPUT} bytes` };
      chunks.push(Buffer.from(chunk.subarray(0, read)));
      // A harness that does not close the pipe must not keep us: a whole document is all that can come.
      if (read < chunk.length && isWhole(chunks)) break;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EOF") break;
      if (code !== "EAGAIN" || waited > MOST_WAIT_MS) return { text: null, why: String(code ?? error) };
      // A pipe that does not block: its writer is on the way.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
      waited += PAUSE_MS;
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

const MOST_WAIT_MS = 5_000;
const PAUSE_MS = 2;

type Machine = Pick<World, "platform" | "git" | "env" | "home" | "cwd">;

export function worldOf(machine: Machine, harnessPid: number | null): World {
  const { platform, git, env, home, cwd } = machine;
  return { platform, git, env, home, cwd, parentPid: process.ppid, harnessPid };
}
