import * as fs from "node:fs";

/** A process that has ended and that nobody has waited for yet is none any more. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  if (!fs.existsSync("/proc/self/status")) return true;
  try {
    return !/^State:\s+[ZX]/m.test(fs.readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    // It has ended since.
    return false;
  }
}
