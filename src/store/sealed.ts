import type { Digest } from "../platform/platform";
import { SUM_LENGTH, sumOf } from "./envelope";
import { object } from "./wire";

/**
 * Small files that are overwritten in place: one JSON document with a checksum of its own, padded with
 * spaces so that a rewrite never has to shorten the file. A reader that meets a half-written one sees it.
 */
const PAD = 512;
const OPENING = '{"sum":"';
const MIDDLE = '","value":';
const BODY_AT = OPENING.length + SUM_LENGTH + MIDDLE.length;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function seal(digest: Digest, value: object, atLeast = 0): Uint8Array {
  const body = JSON.stringify(value);
  const bytes = encoder.encode(`${OPENING}${sumOf(digest, body)}${MIDDLE}${body}}`);
  const size = Math.max(Math.ceil((bytes.length + 1) / PAD) * PAD, atLeast);
  const padded = new Uint8Array(size).fill(0x20);
  padded.set(bytes);
  padded[size - 1] = 0x0a;
  return padded;
}

/** Null when the seal does not hold. */
export function unseal(digest: Digest, bytes: Uint8Array): Readonly<Record<string, unknown>> | null {
  const whole = decoder.decode(bytes).trimEnd();
  const body = whole.slice(BODY_AT, -1);
  if (
    !whole.startsWith(OPENING) ||
    !whole.endsWith("}") ||
    !whole.startsWith(MIDDLE, BODY_AT - MIDDLE.length)
  )
    return null;
  if (sumOf(digest, body) !== whole.slice(OPENING.length, OPENING.length + SUM_LENGTH)) return null;
  try {
    return object(JSON.parse(body));
  } catch {
    return null;
  }
}
