import { randomBytes } from "node:crypto";

const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** A fresh request id, made at a time of the test's choice. */
export function ulid(timeMs: number = Date.now()): string {
  let rest = BigInt(timeMs) * (1n << 80n) + BigInt(`0x${randomBytes(10).toString("hex")}`);
  let text = "";
  for (let i = 0; i < 26; i++) {
    text = DIGITS[Number(rest % 32n)] + text;
    rest /= 32n;
  }
  return text;
}
