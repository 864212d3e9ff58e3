import { rmSync } from "node:fs";

const MOST_TRIES = 50;
const PAUSE_MS = 100;

/**
 * Also where a process that was killed, or a Git whose parent was, still writes something there. Node's own retries only remove
 * the directory again, and not what has come into it.
 */
export function removeTree(path: string): void {
  for (let tries = 1; ; tries++) {
    try {
      rmSync(path, { recursive: true, force: true });
      return;
    } catch (error) {
      if ((error as { code?: unknown }).code !== "ENOTEMPTY" || tries === MOST_TRIES) throw error;
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
  }
}
