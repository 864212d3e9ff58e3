import { ROTATE_BYTES } from "./place";

/** Three groups that have nothing to do with each other; a directory holds the first together, taking both the second. */
export const KEYS = [
  ["dir:src", "file:src/a", "file:src/b", "file:src/deep/c"],
  ["file:lib/x", "resource:db"],
  ["ref:refs/heads/topic"],
];

/** What is common to workers of these layers; leases go to agents of the workers with these numbers. */
export function usualOrders(peers: readonly number[]) {
  return {
    keys: KEYS,
    peers: peers.map((at) => `agent:w${at}-${at % 2}`),
    napMs: 1,
    ttlSecs: [1, 2] as const,
    boundShare: 0.2,
    leftShare: 0.01,
    waitShare: 0.03,
    waitMs: 300,
    rotateBytes: ROTATE_BYTES,
  };
}
