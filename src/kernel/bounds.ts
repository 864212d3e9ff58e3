/**
 * Bounds for every number and time that another machine or a committed file says (PROTOCOL 26a). The log is read by the
 * same functions: whatever gets in at a door can be written down and read again.
 */

/** Counts, versions and tokens only ever grow by steps; one beyond this was made up. */
export const LARGEST_COUNT = 2 ** 50;
/** How far above the highest known token one from elsewhere may be, or a single record uses them all up. */
export const TOKEN_REACH = 2 ** 32;
/** The last millisecond of the year 9999: later ones have no RFC 3339 text. */
export const LATEST_MS = 253_402_300_799_999;

/** A whole number, from 0 to `largest`. */
export function isCount(value: unknown, largest = LARGEST_COUNT): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= largest;
}

/** Whether a token from elsewhere can be taken over where `highest` is the highest known. */
export function isWithinReach(token: number, highest: number): boolean {
  return isCount(token) && token <= highest + TOKEN_REACH;
}

/**
 * The highest of these tokens that can be reached step by step from the highest known: what is too far above everything
 * else was made up, and does not count.
 */
export function highestWithinReach(tokens: Iterable<number>, highest: number): number {
  let top = highest;
  for (const token of [...tokens].filter((one) => isCount(one)).sort((a, b) => a - b))
    if (isWithinReach(token, top)) top = Math.max(top, token);
  return top;
}

function isTimeMs(ms: number): boolean {
  return ms >= 0 && ms <= LATEST_MS;
}

/** The instant that a text names; null for what is none, or none within bounds. */
export function timeMsOf(text: unknown): number | null {
  const ms = typeof text === "string" ? Date.parse(text) : Number.NaN;
  return isTimeMs(ms) ? ms : null;
}
