import { isCount } from "../../kernel/bounds";

/** Of the data branch itself: the highest token that was ever given out (PROTOCOL 26). */
export const TOKENS_PATH = ".cotenant/ledger.json";

export function encodeTokens(highest: number): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify({ schema_version: 1, highest_token: highest })}\n`);
}

/** Null for what nobody of ours has written: it counts for nothing, and is written anew by the next sync. */
export function decodeTokens(bytes: Uint8Array): number | null {
  if (bytes.length > MOST_BYTES) return null;
  try {
    const { highest_token: highest } = JSON.parse(new TextDecoder().decode(bytes)) as Record<string, unknown>;
    return isCount(highest) ? highest : null;
  } catch {
    return null;
  }
}

const MOST_BYTES = 4 << 10;
