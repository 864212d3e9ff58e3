import { AGENT_TYPES } from "../../kernel/ids";
import { KEY_KINDS } from "../../kernel/keys";
import { MOST_RULES, parsePathRule, RULE_FORMS } from "../../kernel/path-rules";
import { DEFAULT_POLICY, LIMITS } from "../../kernel/policy";
import { AGENTS, DAY_SECS, LINE, type Settings } from "../setting";

function wrongRule(entry: string): string | null {
  const rule = parsePathRule(entry);
  return "wrong" in rule ? rule.wrong : null;
}

/** How long leases last, who may do what with them, and the files they are kept in. */
export const LEASES = {
  "coordination.default_ttl_secs": {
    type: "int",
    min: 1,
    max: LIMITS.ttlSecs,
    default: DEFAULT_POLICY.defaultTtlSecs,
    tighten: "trusted",
    meaning: "How long a lease lasts when nobody says.",
  },
  "coordination.lease_renewal_threshold_pct": {
    type: "int",
    min: 0,
    max: 100,
    default: 10,
    tighten: "free",
    meaning: "Warn when a lease of yours has less than this share of its time left.",
  },
  "coordination.stale_threshold_secs": {
    type: "int",
    min: 1,
    max: LIMITS.ttlSecs,
    default: DEFAULT_POLICY.staleThresholdSecs,
    tighten: "lower",
    meaning: "A lease without expiry is stale this long after its last heartbeat, and guards no writes then.",
  },
  "coordination.max_indefinite_leases_per_agent": {
    type: "int",
    min: 0,
    max: 1_000,
    default: DEFAULT_POLICY.maxIndefinitePerAgent,
    tighten: "lower",
    meaning: "How many leases without expiry one agent may hold.",
  },
  "coordination.max_indefinite_leases_per_repo": {
    type: "int",
    min: 0,
    max: 10_000,
    default: DEFAULT_POLICY.maxIndefinitePerRepo,
    tighten: "lower",
    meaning: "How many leases without expiry there may be at once.",
  },
  "coordination.max_total_secs": {
    type: "int",
    min: 1,
    max: 365 * DAY_SECS,
    default: DEFAULT_POLICY.maxTotalSecs,
    tighten: "trusted",
    meaning: "Renewals end this long after a lease was taken.",
  },
  "coordination.escalate_after_secs": {
    type: "int",
    min: 0,
    max: LIMITS.ttlSecs,
    default: DEFAULT_POLICY.escalateAfterSecs,
    tighten: "free",
    meaning:
      "A lease that is held, and kept somebody waiting, for longer than this is one for a person: status lists it, and the log says so once (lease.escalated). Nothing ends by it. 0: off.",
  },
  "coordination.backend": {
    type: "enum",
    values: ["local"],
    default: "local",
    tighten: "trusted",
    meaning: "Who keeps the leases. local: files under the repository's Git directory.",
  },
  "locks.max_age_secs": {
    type: "int",
    min: 1,
    max: 365 * DAY_SECS,
    default: 3_600,
    tighten: "free",
    meaning: "Lock files older than this are worth a report. They are never broken.",
  },
  "locks.enable_metadata": {
    type: "bool",
    only: true,
    default: true,
    tighten: "free",
    meaning: "Lock files say who holds them. Always.",
  },
  "events.enable_sequences": {
    type: "bool",
    only: true,
    default: true,
    tighten: "free",
    meaning: "Log lines carry sequence numbers. Always.",
  },
  "events.use_unified_envelope": {
    type: "bool",
    only: true,
    default: true,
    tighten: "free",
    meaning: "All log lines have the same outer shape. Always.",
  },
  "policy.evict": {
    type: "strings",
    pattern: AGENTS,
    entry: "an agent id, or the beginning of one and *",
    default: DEFAULT_POLICY.evict,
    tighten: "subset",
    meaning: "Who may end a live lease of somebody else.",
  },
  "policy.land": {
    type: "strings",
    pattern: AGENTS,
    entry: "an agent id, or the beginning of one and *",
    default: ["human:*", "ci:*", "admin:*"],
    tighten: "subset",
    meaning:
      "Who may land branches: run, pause and resume the merge queue. Anybody may add to it. See docs/LAND.md.",
  },
  "policy.approvers": {
    type: "int",
    min: 0,
    max: 20,
    default: DEFAULT_POLICY.approvers,
    tighten: "higher",
    meaning:
      "How many others of those whom policy.evict allows must agree before somebody else's live lease is ended. 0: nobody. See docs/COORDINATION.md.",
  },
  "policy.indefinite": {
    type: "strings",
    pattern: new RegExp(`^(?:${KEY_KINDS.join("|")})$`),
    entry: `one of ${KEY_KINDS.join(", ")}`,
    default: DEFAULT_POLICY.indefinite,
    tighten: "subset",
    meaning: "Kinds of key that may be held without expiry.",
  },
  "policy.max_ttl_secs": {
    type: "ints",
    names: AGENT_TYPES,
    min: 1,
    max: LIMITS.ttlSecs,
    default: DEFAULT_POLICY.maxTtlSecs as Readonly<Record<string, number>>,
    tighten: "lower",
    meaning:
      "The longest TTL for each type of agent. A type that is not named has the general limit of 30 days.",
  },
  "policy.paths": {
    type: "strings",
    pattern: LINE,
    entry: `a rule such as ${RULE_FORMS}`,
    forms: RULE_FORMS,
    default: [],
    check: wrongRule,
    most: MOST_RULES,
    tighten: "adding",
    meaning:
      "Which agents may write where: <who> never <pattern>…, or <who> only <pattern>…. A pattern with a slash begins at the root (/README.md is that one file), one without fits at any depth. Every source adds its rules, and all that bind somebody must allow a write. See docs/GUARD.md.",
  },
  "store.rotate_bytes": {
    type: "int",
    min: 65_536,
    max: 1_073_741_824,
    default: 16_777_216,
    tighten: "free",
    meaning: "The log starts a new segment beyond this size.",
  },
  "store.busy_timeout_secs": {
    type: "int",
    min: 1,
    max: 600,
    default: 10,
    tighten: "higher",
    meaning:
      "How long a command waits while one and the same process keeps the store's mutex. While many take it in turn, it waits for up to five minutes.",
  },
} as const satisfies Settings;
