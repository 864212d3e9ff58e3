import { makeUlid, type Ulid } from "./ids";
import type { LeaseKey } from "./keys";

/** No issue is from 1970: the time part of an issue's id is never all zeros. */
const TIMELESS = "0000000000";

/**
 * Between machines the right to land on a target is claimed like an issue, under an id that every clone works out from the
 * target's name. `digest` is the SHA-256 of the full ref name, in hex.
 */
export function landingRightId(digest: string): Ulid {
  const bytes = Array.from({ length: 10 }, (_, at) => Number.parseInt(digest.slice(2 * at, 2 * at + 2), 16));
  return makeUlid(0, Uint8Array.from(bytes));
}

function isLandingRight(issueId: string): boolean {
  return issueId.length === 26 && issueId.startsWith(TIMELESS);
}

export function isLandingKey(key: LeaseKey): boolean {
  return key.startsWith("issue:") && isLandingRight(key.slice("issue:".length));
}

/** A lease's key for people. Of which target it is the landing right, its reason says. */
export function shownKey(key: string): string {
  return key.startsWith("issue:") && isLandingRight(key.slice("issue:".length)) ? "the landing right" : key;
}
