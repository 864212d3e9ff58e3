import type { Settings } from "../setting";

/** The process that looks after leases while nobody else does. */
export const DAEMON = {
  "coordination.auto_renew_leases": {
    type: "bool",
    default: false,
    tighten: "free",
    meaning:
      "The daemon renews leases of sessions that are alive, within max_total_secs. Leases of others end when their time is up.",
  },
  "coordination.heartbeat_interval_secs": {
    type: "int",
    min: 5,
    max: 3_600,
    default: 30,
    tighten: "free",
    meaning: "How often the daemon shows that the sessions it keeps are alive.",
  },
  "daemon.autostart": {
    type: "bool",
    default: false,
    tighten: "trusted",
    meaning: "Commands that change leases start the daemon where none is running.",
  },
  "daemon.idle_exit_secs": {
    type: "int",
    min: 0,
    max: 86_400,
    default: 1_800,
    tighten: "free",
    meaning: "The daemon ends when it has had nothing to do for this long; 0: never.",
  },
} as const satisfies Settings;
