import { DEFAULT_POLICY, LIMITS } from "../../kernel/policy";
import { DAY_SECS, type Settings } from "../setting";

/** Leases that agents get without asking for them. */
export const GUARD = {
  "guard.stop_idle_secs": {
    type: "int",
    min: 0,
    max: DAY_SECS,
    default: DEFAULT_POLICY.stopIdleSecs,
    tighten: "higher",
    meaning: "A stopped session's file leases end after this, unless it goes on.",
  },
  "guard.unknown_ttl_secs": {
    type: "int",
    min: 1,
    max: LIMITS.ttlSecs,
    default: DEFAULT_POLICY.unknownTtlSecs,
    tighten: "higher",
    meaning:
      "File leases of processes that cannot be seen from here end this long after their last sign of life.",
  },
  "guard.retry_secs": {
    type: "int",
    min: 1,
    max: 3_600,
    default: 180,
    tighten: "free",
    meaning: "A denied write is tried once more, exactly this much later.",
  },
  "guard.retry": {
    type: "enum",
    values: ["once", "on_release"],
    default: "once",
    tighten: "free",
    meaning: "once: only after guard.retry_secs; on_release: also when the holder releases the file.",
  },
  "guard.across_worktrees": {
    type: "enum",
    values: ["off", "warn", "enforce"],
    default: "warn",
    tighten: "later",
    meaning: "The same path changed in two worktrees. off: nothing; warn: a remark; enforce: refused.",
  },
  "guard.on_failure": {
    type: "enum",
    values: ["open", "closed_if_held", "closed"],
    default: "closed_if_held",
    tighten: "later",
    meaning:
      "A guard that cannot decide. open: allows; closed_if_held: refuses files known to be held; closed: refuses.",
  },
  "guard.deadline_secs": {
    type: "int",
    min: 1,
    max: 60,
    default: 10,
    tighten: "higher",
    meaning:
      "A check that has not decided by then, waiting for a file apart, answers as guard.on_failure says.",
  },
} as const satisfies Settings;
