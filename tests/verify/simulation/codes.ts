import type { Call } from "./call";
import type { Player } from "./player";

/** What anybody may be told at any time: it says how things stand, not that something is wrong. */
const ORDINARY: ReadonlySet<string> = new Set([
  "E_LOCK_CONFLICT",
  "E_QUEUED",
  "E_NOT_FOUND",
  "E_LOCK_NOT_HELD",
  "E_LOCK_EXPIRED",
  "E_FENCING_MISMATCH",
  "E_WAIT_TIMEOUT",
  "E_POLICY",
]);

/** Whether an answer is one that this story can bring about. Everything else is a broken promise of its own. */
export function isExpected(error: unknown, call: Call, { world, auditor, counts }: Player): boolean {
  const { code } = error as { code?: unknown };
  if (typeof code !== "string") return false;
  if (ORDINARY.has(code)) return true;
  const had = (...names: string[]) => names.some((name) => (counts.get(name) ?? 0) > 0);
  switch (code) {
    case "E_DISK":
    case "E_PERMISSION":
      return had("trouble.fault") && struck(world.counters.toJSON());
    case "E_STORE_BUSY":
      return had("trouble.pause", "trouble.time");
    case "E_LOG_CORRUPT":
      if (auditor.chronicle.wasSpoiledSince(call.began)) return true;
      // ADR 0009: lost in the window, and found out.
      auditor.isExcused = auditor.window.wasUsed;
      return auditor.isExcused;
    case "E_LIMIT":
      // Too many without expiry; or a request id, or a lifetime, that a clock has made too old.
      return (
        call.deed.do === "acquire" || had("trouble.clock", "trouble.power", "trouble.time", "trouble.pause")
      );
    case "E_USAGE":
      // Which of the leases on that key, in several worktrees?
      return call.deed.do === "evict" || call.deed.do === "transfer";
    default:
      return false;
  }
}

function struck(counters: Readonly<Record<string, number>>): boolean {
  return Object.entries(counters).some(([name, count]) => name.startsWith("fault.") && count > 0);
}
