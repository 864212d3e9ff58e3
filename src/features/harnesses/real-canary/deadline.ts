import { setTimeout as nap } from "node:timers/promises";

const POLL_MS = 100;

/** Something did not happen within the time it had. */
export class Late extends Error {}

export async function inTime<T>(promise: Promise<T>, what: string, mostMs: number): Promise<T> {
  const over = new AbortController();
  try {
    return await Promise.race([
      promise,
      nap(mostMs, undefined, { signal: over.signal }).then(() => {
        throw new Late(`${what} within ${Math.round(mostMs / 1000)} s`);
      }),
    ]);
  } finally {
    over.abort();
  }
}

/** Whether a condition came true in time. */
export async function cameTrue(
  condition: () => Promise<boolean> | boolean,
  mostMs: number,
): Promise<boolean> {
  for (const endMs = performance.now() + mostMs; ; ) {
    if (await condition()) return true;
    if (performance.now() >= endMs) return false;
    await nap(POLL_MS);
  }
}
