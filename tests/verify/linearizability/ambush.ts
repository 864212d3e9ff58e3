import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { WorkerProcess } from "./crew";
import type { Place } from "./place";
import { nowMs } from "./record";

const PATIENCE_MS = 400;

/** Whoever is in the critical section, as far as the lock file tells. */
export function insider({ control }: Place, workers: readonly WorkerProcess[]): WorkerProcess | undefined {
  try {
    const { pid } = JSON.parse(readFileSync(join(control, "locks/claims.lock"), "utf8")) as { pid: number };
    return workers.find((worker) => worker.pid === pid);
  } catch {
    // Not there yet, or being written.
    return undefined;
  }
}

/**
 * Kills whoever writes the next line, as soon as it is in the log: its operation has taken effect, and its caller has
 * most likely not heard of it.
 */
export function killNextWriter(place: Place, workers: readonly WorkerProcess[]): boolean {
  const log = join(place.control, "claims.jsonl");
  const size = () => statSync(log, { throwIfNoEntry: false })?.size ?? 0;
  const before = size();
  const until = nowMs() + PATIENCE_MS;
  // Without a rest: what is waited for is over in less than a timer's tick.
  while (size() <= before) if (nowMs() > until) return false;
  const writer = insider(place, workers);
  writer?.kill();
  return writer !== undefined;
}
