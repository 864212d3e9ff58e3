import type { KeyKind } from "../kernel/keys";
import type { Policy } from "../kernel/policy";
import type { Digest, Platform } from "../platform/platform";
import type { Committed } from "./committed";
import { type JoinedLedger, joinedLayer } from "./joined-ledger";
import {
  type ConfigLayer,
  type ConfigSource,
  environmentLayer,
  fileLayer,
  flagLayer,
  repositoryLayers,
} from "./layers";
import { remember, rememberedLayer } from "./memory";
import type { ConfigMemory } from "./memory-place";
import { configFiles } from "./places";
import { type ConfigProblem, configError } from "./problem";
import { CONFIG_KEYS, type ConfigKey, type ConfigValue, type ConfigValues, settingOf } from "./schema";
import { loosens } from "./tighten";
import { digestOf, NO_TRUST, subjectOf, type Trust, trusts } from "./trust";

export { configFiles, userConfigDirectory } from "./places";

export interface ConfigQuestion {
  readonly platform: Platform;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Null when there is no home directory. */
  readonly home: string | null;
  /** Null outside a worktree. */
  readonly worktreeRoot: string | null;
  /** What is committed, for a worktree that lacks the repository's file, or has another one. */
  readonly committed?: Committed;
  /** Overrides of this one command, by key. */
  readonly flags?: Readonly<Record<string, unknown>>;
  /** `/etc/cotenant` unless a test says otherwise. */
  readonly systemDirectory?: string;
  /** What this clone allows its repository's file to loosen. Default: nothing. */
  readonly trust?: Trust;
  /** The ledger that was set up in this clone: it counts where nothing else names one. */
  readonly joined?: JoinedLedger | null;
  /**
   * From whoever enforces rules, such as hooks and guard: nothing that is wrong in any source is an error then, and where
   * the repository's file is broken, what it last said holds.
   */
  readonly memory?: ConfigMemory;
}

export interface ConfigOrigin {
  readonly source: ConfigSource;
  /** A file's path, a variable's name, "command line" or "default". */
  readonly place: string;
  readonly line: number | null;
}

/** What the repository's file sets and nobody of this clone has allowed. It does not count. */
interface Untrusted {
  readonly key: ConfigKey;
  readonly value: ConfigValue;
  /** To be read between the file and the key. A name binds before it is used: see `Config.namedOnly`. */
  readonly does: "loosens" | "names";
  /** What counts instead, as far as this file is concerned. */
  readonly instead: ConfigValue;
  readonly place: string;
  readonly line: number | null;
}

/** A variable that is looser than what the repository's file sets. It does not count. */
export interface Overruled {
  readonly key: ConfigKey;
  readonly value: ConfigValue;
  readonly variable: string;
  /** Where the rule stands that it would loosen. */
  readonly place: string;
  readonly line: number | null;
}

export function overruledText({ key, variable, place, line }: Overruled): string {
  const where = line === null ? place : `${place}:${line}`;
  return `${variable} does not count: it would loosen ${key}, which ${where} sets`;
}

export interface Config {
  readonly values: ConfigValues;
  readonly policy: Policy;
  /** Where a value came from; for a table, or a list that sources add to, the uppermost source that sets any of it. */
  origin(key: ConfigKey): ConfigOrigin;
  /** What each source says, the strongest first, for `config show-hierarchy` and for trust. */
  readonly layers: readonly ConfigLayer[];
  readonly untrusted: readonly Untrusted[];
  readonly overruled: readonly Overruled[];
  /**
   * What the repository's file names for a setting of kind `naming`, while nobody here trusts it and nothing else is named.
   * The value is not to be used, but that there is one binds: with `sync.ledger_branch`, claims are shared elsewhere.
   */
  namedOnly(key: ConfigKey): Untrusted | null;
  /** What is wrong with the repository's file while something else counts in its place; null where it counts itself. */
  readonly standIn: StandIn | null;
}

export interface StandIn {
  readonly problems: readonly ConfigProblem[];
  /** Whether the file could be read once; else only what can be understood of it counts. */
  readonly isRemembered: boolean;
}

/** The configuration in effect, or `E_CONFIG` with everything that is wrong in any source. */
export async function loadConfig(question: ConfigQuestion): Promise<Config> {
  const { config, problems } = await inspectConfig(question);
  if (problems.length > 0 && question.memory === undefined) throw configError(problems);
  return config;
}

/** The same without the error, for `config validate` and `doctor`: what is wrong is left out and listed. */
export async function inspectConfig(
  question: ConfigQuestion,
): Promise<{ config: Config; problems: readonly ConfigProblem[] }> {
  const { platform, env, flags } = question;
  const layers = [flagLayer(flags ?? {}), environmentLayer(env)];
  for (const { source, file } of configFiles(question))
    layers.push(
      ...(source === "worktree"
        ? await repositoryLayers(platform, file, question.committed ?? null)
        : [await fileLayer(platform, source, file)]),
    );
  const problems = layers.flatMap((layer) => layer.problems);
  const standIn = await withMemory(layers, question);
  return { config: { ...settle(layers, question), standIn }, problems };
}

/** What counts of the layers. A ledger that was joined brings its remote and prefix only where it is the one in force. */
function settle(layers: readonly ConfigLayer[], question: ConfigQuestion): Omit<Config, "standIn"> {
  const { platform, joined = null, trust = NO_TRUST } = question;
  const all = joined === null ? layers : [...layers, joinedLayer(joined)];
  const { counting: honoured, untrusted } = withoutUntrusted(all, trust, platform.digest);
  const { counting, overruled } = withoutOverruled(honoured);
  const merged = merge(counting);
  if (joined !== null && merged.values["sync.ledger_branch"] !== joined.branch)
    return settle(layers, { ...question, joined: null });
  const namedOnly = (key: ConfigKey) =>
    merged.values[key] === null
      ? (untrusted.find((entry) => entry.key === key && entry.does === "names") ?? null)
      : null;
  return { ...merged, layers: all, untrusted, overruled, namedOnly };
}

/** Puts what is remembered of the repository's file in its place where that is broken, and remembers it where it is not. */
async function withMemory(layers: ConfigLayer[], question: ConfigQuestion): Promise<StandIn | null> {
  const { memory, platform } = question;
  const at = layers.findIndex(({ source }) => source === "worktree");
  const committed = layers[at];
  if (memory === undefined || committed === undefined) return null;
  if (committed.problems.length === 0) {
    await remember(platform, memory, committed);
    return null;
  }
  const remembered = await rememberedLayer(platform, memory, committed);
  if (remembered !== null) layers[at] = remembered;
  return { problems: committed.problems, isRemembered: remembered !== null };
}

/** The layers with everything taken out of the repository's file that loosens a rule and is not trusted. */
function withoutUntrusted(
  layers: readonly ConfigLayer[],
  trust: Trust,
  digest: Digest,
): { counting: readonly ConfigLayer[]; untrusted: readonly Untrusted[] } {
  const at = layers.findIndex(({ source }) => source === "worktree");
  const committed = layers[at];
  if (committed === undefined || committed.entries.size === 0) return { counting: layers, untrusted: [] };
  const below = merge(layers.slice(at + 1)).values;
  const whole = merge(layers.slice(at)).values;
  const untrusted: Untrusted[] = [];
  for (const [key, { value, place, line }] of committed.entries) {
    if (!loosens(key, below[key], whole[key])) continue;
    if (trusts(trust, subjectOf(key), digestOf(digest, value))) continue;
    const does = settingOf(key).tighten === "naming" && below[key] === null ? "names" : "loosens";
    untrusted.push({ key, value, does, instead: below[key], place, line });
  }
  const entries = new Map(committed.entries);
  for (const { key } of untrusted) entries.delete(key);
  return { counting: layers.with(at, { ...committed, entries }), untrusted };
}

/**
 * The layers with everything taken out of the environment that is looser than a rule which the repository's file sets and
 * this clone honours: whoever is bound by a rule could otherwise lift it, since an agent chooses its own environment.
 */
function withoutOverruled(layers: readonly ConfigLayer[]): {
  counting: readonly ConfigLayer[];
  overruled: readonly Overruled[];
} {
  const at = layers.findIndex(({ source }) => source === "environment");
  const committed = layers.find(({ source }) => source === "worktree");
  const environment = layers[at];
  if (environment === undefined || committed === undefined || environment.entries.size === 0)
    return { counting: layers, overruled: [] };
  const below = merge(layers.slice(at + 1)).values;
  const whole = merge(layers.slice(at)).values;
  const entries = new Map(environment.entries);
  const overruled: Overruled[] = [];
  for (const [key, { value, place: variable }] of environment.entries) {
    const rule = committed.entries.get(key);
    if (rule === undefined || !loosens(key, below[key], whole[key])) continue;
    entries.delete(key);
    overruled.push({ key, value, variable, place: rule.place, line: rule.line });
  }
  return { counting: layers.with(at, { ...environment, entries }), overruled };
}

function merge(layers: readonly ConfigLayer[]): Pick<Config, "values" | "policy" | "origin"> {
  const values: Partial<Record<ConfigKey, ConfigValue>> = {};
  const origins = new Map<ConfigKey, ConfigOrigin>();
  for (const key of CONFIG_KEYS) {
    const setting = settingOf(key);
    const setters = layers.filter((layer) => layer.entries.has(key));
    const [first] = setters;
    if (first === undefined) {
      values[key] = setting.default;
      continue;
    }
    const { value, place, line } = first.entries.get(key)!;
    origins.set(key, { source: first.source, place, line });
    // A table that names only one type of agent must not lift the limits of the others.
    const isTable = setting.type === "ints" || setting.type === "lists";
    const tables = () => setters.map((layer) => layer.entries.get(key)!.value as object).reverse();
    // What one source forbids, no other one allows.
    const lists = () => setters.flatMap((layer) => layer.entries.get(key)!.value as readonly string[]);
    if (setting.tighten === "adding") values[key] = [...new Set(lists())];
    else values[key] = isTable ? Object.assign({}, setting.default, ...tables()) : value;
  }
  const whole = values as unknown as ConfigValues;
  return {
    values: whole,
    policy: policyOf(whole),
    origin: (key) => origins.get(key) ?? { source: "default", place: "default", line: null },
  };
}

export function policyOf(values: ConfigValues): Policy {
  return {
    defaultTtlSecs: values["coordination.default_ttl_secs"],
    maxTotalSecs: values["coordination.max_total_secs"],
    maxTtlSecs: values["policy.max_ttl_secs"],
    evict: values["policy.evict"],
    approvers: values["policy.approvers"],
    escalateAfterSecs: values["coordination.escalate_after_secs"],
    indefinite: values["policy.indefinite"] as readonly KeyKind[],
    maxIndefinitePerAgent: values["coordination.max_indefinite_leases_per_agent"],
    maxIndefinitePerRepo: values["coordination.max_indefinite_leases_per_repo"],
    stopIdleSecs: values["guard.stop_idle_secs"],
    unknownTtlSecs: values["guard.unknown_ttl_secs"],
    staleThresholdSecs: values["coordination.stale_threshold_secs"],
  };
}
