import { AGENT_TYPES } from "../kernel/ids";
import { KEY_KINDS } from "../kernel/keys";
import { DEFAULT_POLICY, LIMITS } from "../kernel/policy";

/**
 * Which way a value becomes stricter. A committed file may tighten what the clone's owner has set; whatever
 * loosens it needs trust.
 *
 * - `lower`, `higher`: numbers, or every number of a table
 * - `later`: the values are listed from the loosest to the strictest
 * - `on`, `off`: that truth value is the strict one
 * - `subset`: fewer entries are stricter
 * - `trusted`: every change may loosen something
 * - `free`: it is about comfort or speed, not about rules
 */
export type Tighten = "lower" | "higher" | "later" | "on" | "off" | "subset" | "trusted" | "free";

interface Common {
  readonly meaning: string;
  readonly tighten: Tighten;
}

export interface IntSetting extends Common {
  readonly type: "int";
  readonly min: number;
  readonly max: number;
  readonly default: number;
}

export interface BoolSetting extends Common {
  readonly type: "bool";
  readonly default: boolean;
  /** The seed documents have a switch for it; here there is no other way. */
  readonly only?: true;
}

export interface EnumSetting extends Common {
  readonly type: "enum";
  readonly values: readonly string[];
  readonly default: string;
}

export interface StringSetting extends Common {
  readonly type: "string";
  readonly pattern: RegExp;
  readonly default: string | null;
  /** For the commented template, where there is no default to show. */
  readonly example: string;
}

export interface StringsSetting extends Common {
  readonly type: "strings";
  readonly pattern: RegExp;
  /** What an entry must be, for the error message. */
  readonly entry: string;
  readonly default: readonly string[];
}

/** A table of whole numbers. Every entry is a value of its own: an upper source overrides entry by entry. */
export interface IntsSetting extends Common {
  readonly type: "ints";
  readonly names: readonly string[];
  readonly min: number;
  readonly max: number;
  readonly default: Readonly<Record<string, number>>;
}

export type Setting = IntSetting | BoolSetting | EnumSetting | StringSetting | StringsSetting | IntsSetting;

const DAY = 86_400;
const BRANCH = /^(?!-)[^\x00-\x20\x7f~^:?*[\\]{1,250}$/;

/** Every key there is. Defaults, validation, `config show`, the template and the reference page come from here. */
export const SCHEMA = {
  "worktree.mode": {
    type: "enum",
    values: ["off", "auto", "on"],
    default: "auto",
    tighten: "later",
    meaning:
      "auto: use what Git says about worktrees; on: fail outside one; off: treat all as one directory.",
  },
  "worktree.enforce_leases": {
    type: "enum",
    values: ["off", "warn", "strict"],
    default: "strict",
    tighten: "later",
    meaning:
      "Changing an issue without its lease. strict: refused; warn: allowed with a warning; off: allowed.",
  },
  "coordination.default_ttl_secs": {
    type: "int",
    min: 1,
    max: LIMITS.ttlSecs,
    default: DEFAULT_POLICY.defaultTtlSecs,
    tighten: "lower",
    meaning: "How long a lease lasts when nobody says.",
  },
  "coordination.heartbeat_interval_secs": {
    type: "int",
    min: 1,
    max: DAY,
    default: 30,
    tighten: "free",
    meaning: "How often a daemon or a running dispatcher gives a sign of life.",
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
  "coordination.auto_renew_leases": {
    type: "bool",
    default: false,
    tighten: "off",
    meaning: "Let the daemon renew leases that run low.",
  },
  "coordination.max_total_secs": {
    type: "int",
    min: 1,
    max: 365 * DAY,
    default: DEFAULT_POLICY.maxTotalSecs,
    tighten: "lower",
    meaning: "Renewals end this long after a lease was taken.",
  },
  "coordination.backend": {
    type: "enum",
    values: ["local"],
    default: "local",
    tighten: "trusted",
    meaning: "Who keeps the leases. local: files under the repository's Git directory.",
  },
  "global_operations.require_main_history": {
    type: "bool",
    default: true,
    tighten: "on",
    meaning: "Changing configuration, types or gates needs the main branch's tip in the current history.",
  },
  "global_operations.allowed_branches": {
    type: "strings",
    pattern: BRANCH,
    entry: "a branch name",
    default: ["main", "develop"],
    tighten: "subset",
    meaning: "Branches on which configuration, types and gates may be changed.",
  },
  "global_operations.main_branch": {
    type: "string",
    pattern: BRANCH,
    default: null,
    example: "main",
    tighten: "trusted",
    meaning: "The main branch. Not set: the remote's HEAD, else main.",
  },
  "locks.max_age_secs": {
    type: "int",
    min: 1,
    max: 365 * DAY,
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
    pattern: /^(?:\*|(?:agent|human|ci|admin):[A-Za-z0-9._@+-]*\*?)$/,
    entry: "an agent id, or the beginning of one and *",
    default: DEFAULT_POLICY.evict,
    tighten: "subset",
    meaning: "Who may end a live lease of somebody else.",
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
  "guard.stop_idle_secs": {
    type: "int",
    min: 0,
    max: DAY,
    default: DEFAULT_POLICY.stopIdleSecs,
    tighten: "lower",
    meaning: "A stopped session's file leases end after this, unless it goes on.",
  },
  "guard.unknown_ttl_secs": {
    type: "int",
    min: 1,
    max: LIMITS.ttlSecs,
    default: DEFAULT_POLICY.unknownTtlSecs,
    tighten: "lower",
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
    tighten: "free",
    meaning: "How long a command waits for the store's mutex before it gives up.",
  },
} as const satisfies Readonly<Record<string, Setting>>;

export type ConfigKey = keyof typeof SCHEMA;

type ValueOf<S> = S extends { readonly type: "int" }
  ? number
  : S extends { readonly type: "bool" }
    ? boolean
    : S extends { readonly type: "enum"; readonly values: readonly (infer V)[] }
      ? V
      : S extends { readonly type: "string" }
        ? string | null
        : S extends { readonly type: "strings" }
          ? readonly string[]
          : Readonly<Record<string, number>>;

export type ConfigValues = { readonly [K in ConfigKey]: ValueOf<(typeof SCHEMA)[K]> };
export type ConfigValue =
  | string
  | number
  | boolean
  | null
  | readonly string[]
  | Readonly<Record<string, number>>;

export const CONFIG_KEYS = Object.keys(SCHEMA) as readonly ConfigKey[];
export const CONFIG_SECTIONS: readonly string[] = [...new Set(CONFIG_KEYS.map(sectionOf))];

export function isConfigKey(key: string): key is ConfigKey {
  return Object.hasOwn(SCHEMA, key);
}

/** The setting with its type forgotten, for code that treats all alike. */
export function settingOf(key: ConfigKey): Setting {
  return SCHEMA[key];
}

export function sectionOf(key: string): string {
  return key.slice(0, key.indexOf("."));
}

export function nameInSection(key: string): string {
  return key.slice(key.indexOf(".") + 1);
}

/** `guard.retry_secs` → `COTENANT_GUARD_RETRY_SECS`. */
export function variableOf(key: ConfigKey): string {
  return `COTENANT_${key.replace(".", "_").toUpperCase()}`;
}
