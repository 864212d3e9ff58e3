import { LIMITS } from "../../kernel/policy";
import { BRANCH, DAY_SECS, LINE, type Settings } from "../setting";

/** Claims between machines, over a branch of the Git remote. */
export const SYNC = {
  "sync.ledger_branch": {
    type: "string",
    pattern: BRANCH,
    default: null,
    example: "cotenant-sync",
    tighten: "trusted",
    meaning: "The branch that carries claims between machines. Not set: claims are of this clone only.",
  },
  "sync.claims_prefix": {
    type: "string",
    pattern: /^refs\/[^\x00-\x20\x7f~^:?*[\\]{1,200}\/$/,
    default: "refs/cotenant/claims/",
    example: "refs/heads/cotenant-claims/",
    tighten: "trusted",
    meaning: "Where the remote keeps one ref per claim, for hosts that allow only branches.",
  },
  "sync.auto_claim_push": {
    type: "bool",
    default: true,
    tighten: "on",
    meaning: "A claim is pushed at once. false: it stays provisional until the next sync.",
  },
  "sync.claim_retries": {
    type: "int",
    min: 1,
    max: 100,
    default: 5,
    tighten: "free",
    meaning: "How often a claim is tried again when somebody else pushed first.",
  },
  "sync.claim_timeout_hours": {
    type: "int",
    min: 1,
    max: 24 * 365,
    default: null,
    tighten: "free",
    meaning: "Claims without expiry are released this long after their last sign of life. Not set: never.",
  },
  "sync.claim_ttl_secs": {
    type: "int",
    min: 60,
    max: LIMITS.ttlSecs,
    default: 3_600,
    tighten: "lower",
    meaning: "How long a claim between machines lasts when nobody says.",
  },
  "sync.clock_skew_secs": {
    type: "int",
    min: 0,
    max: DAY_SECS,
    default: 30,
    tighten: "higher",
    meaning: "How far clocks of machines may differ: others wait this much longer than the expiry.",
  },
  "sync.offline_mode": {
    type: "enum",
    values: ["local", "fail"],
    default: "local",
    tighten: "later",
    meaning: "When the remote cannot be reached. local: claim provisionally; fail: refuse.",
  },
  "sync.network_timeout": {
    type: "int",
    min: 1,
    max: 600,
    default: 30,
    tighten: "free",
    meaning: "Seconds that one exchange with the remote may take.",
  },
  "sync.global_path_override": {
    type: "string",
    pattern: LINE,
    default: null,
    example: "/var/lib/cotenant",
    tighten: "trusted",
    meaning: "Where this machine keeps its copy of the ledger, instead of ~/.local/share/cotenant.",
  },
} as const satisfies Settings;
