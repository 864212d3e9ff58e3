import { existsSync } from "node:fs";
import { tmpdir } from "node:os";

/** Where files cost no disk. Vitest and `npm run verify` name a place of their own, and clear it whatever happened. */
export function memoryFolder(): string {
  return process.env["TEST_MEMORY"] ?? (existsSync("/dev/shm") ? "/dev/shm" : tmpdir());
}
