import { appendFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Each thing has a witness: the small shared file that its holders write to, and that remembers every write with
 * the token it was made under. A line is appended only inside the store's critical section, after the check that
 * the lease stands; so it can also say how far the log had come at that instant.
 */
export interface Testimony {
  readonly verb: Verb;
  readonly token: number;
  readonly pid: number;
  /** The log's last line at that instant. */
  readonly sequence: number;
  /** The monotonic clock when the lease was found valid. */
  readonly atMs: number;
}

export type Verb = "enter" | "write" | "leave";

export function witnessPath(folder: string, thing: string): string {
  return join(folder, encodeURIComponent(thing));
}

/** Lines of one size never lie across two pages, so that a kill leaves a whole one or none. */
const LINE_BYTES = 64;

export function testify(folder: string, thing: string, said: Testimony): void {
  const { verb, token, pid, sequence, atMs } = said;
  const line = `${verb} ${token} ${pid} ${sequence} ${atMs}`.padEnd(LINE_BYTES - 1);
  appendFileSync(witnessPath(folder, thing), `${line}\n`);
}

/** Null for a line that no worker writes. */
export function readTestimony(line: string): Testimony | null {
  const found = /^(enter|write|leave) (\d+) (\d+) (\d+) (\d+) *$/.exec(line);
  if (found === null) return null;
  const [token = 0, pid = 0, sequence = 0, atMs = 0] = found.slice(2).map(Number);
  return { verb: found[1] as Verb, token, pid, sequence, atMs };
}
