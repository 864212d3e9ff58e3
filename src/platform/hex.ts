import type { Random } from "./platform";

const HEX_OF = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

export function hexOf(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += HEX_OF[byte]!;
  return text;
}

/** What makes a name beside others one that nobody else has. */
export function freshSuffix(random: Pick<Random, "bytes">, bytes = 6): string {
  return hexOf(random.bytes(bytes));
}
