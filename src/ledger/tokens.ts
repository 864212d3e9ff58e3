/** Of the data branch itself: the highest token that was ever given out (PROTOCOL 26). */
export const TOKENS_PATH = ".cotenant/ledger.json";

export function encodeTokens(highest: number): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify({ schema_version: 1, highest_token: highest })}\n`);
}

export function decodeTokens(bytes: Uint8Array): number {
  try {
    const { highest_token: highest } = JSON.parse(new TextDecoder().decode(bytes)) as Record<string, unknown>;
    return Number.isSafeInteger(highest) && (highest as number) > 0 ? (highest as number) : 0;
  } catch {
    return 0;
  }
}
