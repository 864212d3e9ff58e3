import { printable } from "../kernel/ids";
import type { Platform } from "../platform/platform";
import { COMMITTED_CONFIG, type Committed, replacedConfig } from "./committed";
import { nearest } from "./nearest";
import type { ConfigProblem } from "./problem";
import {
  CONFIG_KEYS,
  CONFIG_SECTIONS,
  type ConfigKey,
  type ConfigValue,
  isConfigKey,
  nameInSection,
  sectionOf,
  settingOf,
  variableOf,
} from "./schema";
import { isProblem, lineOf, readToml, type TomlDocument, tomlFrom } from "./toml-file";
import { asToml, isTable, isWrong, understood, valueFromText, valueFromToml } from "./values";

const PREFIX = "COTENANT_";

export type ConfigSource = "flag" | "environment" | "worktree" | "user" | "system" | "clone" | "default";

export interface ConfigEntry {
  readonly value: ConfigValue;
  /** A file's path, a variable's name, or "command line". */
  readonly place: string;
  readonly line: number | null;
}

/** What one source sets. */
export interface ConfigLayer {
  readonly source: Exclude<ConfigSource, "default">;
  readonly entries: ReadonlyMap<ConfigKey, ConfigEntry>;
  readonly problems: readonly ConfigProblem[];
  /** A file that this process may not read. */
  readonly unreadable?: string;
  /** Variables that begin like ours and mean nothing, each with the name that it nearly has. */
  readonly unknown?: readonly UnknownVariable[];
}

interface UnknownVariable {
  readonly variable: string;
  readonly nearest: string | null;
}

/** Variables that are no settings: who asks, how, and what programs that we start are told. */
const OTHER_VARIABLES: readonly string[] = [
  "AGENT_ID",
  "SESSION_ID",
  "SECRET",
  "ALLOW_NETWORK_FS",
  "DEBUG",
  "CACHE_ROOT",
  "ISSUE_ID",
  "GATE",
  "GIT_PID",
  ...["LEASE_ID", "FENCING_TOKEN", "ISSUE_TITLE", "WORKTREE", "BRANCH", "BASE", "GIT_DIR", "PROMPT_FILE"],
  ...["ATTEMPT", "WORKER", "PORT", "PORTS", "COMMAND", "CODEX_HOOKS"],
  "CANARY",
  "NO_DAEMON",
].map((name) => `${PREFIX}${name}`);

/**
 * Variables that begin like configuration of a known section and are none. The context that `dispatch` and
 * `exec` give to their children is here.
 */
const NOT_CONFIGURATION: ReadonlySet<string> = new Set([
  ...["ID", "ROOT", "BRANCH"].map((name) => `COTENANT_WORKTREE_${name}`),
  ...["BRANCH", "BASE", "PARENT", "COMMIT"].map((name) => `COTENANT_PUBLISH_${name}`),
  ...["ENTRY", "BRANCH", "TARGET", "BASE", "COMMIT"].map((name) => `COTENANT_LANDING_${name}`),
]);

export async function fileLayer(
  platform: Platform,
  source: "user" | "system",
  path: string,
): Promise<ConfigLayer> {
  const document = await readToml(platform, path, source);
  if (document === "forbidden") return { source, entries: new Map(), problems: [], unreadable: path };
  return document === null ? emptyLayer(source) : documentLayer(source, document);
}

/**
 * What the repository's file says. To a list that sources add to, the file in HEAD goes on adding while the worktree has
 * another one: whoever a rule binds could otherwise lift it by an edit. A commit takes it off, if its maker may make it.
 */
export async function repositoryLayers(
  platform: Platform,
  path: string,
  committed: Committed | null,
): Promise<ConfigLayer[]> {
  const document = await readToml(platform, path, "worktree", committed);
  if (document === null || document === "forbidden") return [emptyLayer("worktree")];
  const own = documentLayer("worktree", document);
  const isThere = isProblem(document) || document.file !== COMMITTED_CONFIG;
  const replaced =
    committed === null || !isThere
      ? null
      : await replacedConfig(platform, committed, isProblem(document) ? null : document.text);
  if (replaced === null) return [own];
  const { entries } = documentLayer("worktree", await tomlFrom(COMMITTED_CONFIG, replaced));
  const adding = [...entries].flatMap(([key, entry]): [ConfigKey, ConfigEntry][] => {
    if (settingOf(key).tighten !== "adding") return [];
    const known = (own.entries.get(key)?.value ?? []) as readonly string[];
    const value = (entry.value as readonly string[]).filter((one) => !known.includes(one));
    return value.length === 0 ? [] : [[key, { ...entry, value }]];
  });
  return adding.length === 0 ? [own] : [own, { ...emptyLayer("worktree"), entries: new Map(adding) }];
}

function emptyLayer(source: ConfigLayer["source"]): ConfigLayer {
  return { source, entries: new Map(), problems: [] };
}

export function documentLayer(
  source: "worktree" | "user" | "system",
  document: TomlDocument | ConfigProblem,
): ConfigLayer {
  if (isProblem(document)) return { source, entries: new Map(), problems: [document] };
  const { file } = document;
  const entries = new Map<ConfigKey, ConfigEntry>();
  const problems: ConfigProblem[] = [];
  for (const [section, content] of Object.entries(document.root)) {
    const wrong = wrongSection(document, section, content);
    if (wrong !== null) {
      problems.push(wrong);
      continue;
    }
    for (const [name, raw] of Object.entries(content as Record<string, unknown>)) {
      const key = `${section}.${name}`;
      const line = lineOf(document.text, [section, name]);
      if (!isConfigKey(key)) {
        problems.push(unknownKey(file, line, key));
        continue;
      }
      const value = valueFromToml(settingOf(key), raw);
      if (isWrong(value)) problems.push(wrongValue(file, line, key, value));
      const counting = isWrong(value) ? understood(settingOf(key), raw) : value;
      if (counting !== null) entries.set(key, { value: counting, place: file, line });
    }
  }
  return { source, entries, problems };
}

export function environmentLayer(env: Readonly<Record<string, string | undefined>>): ConfigLayer {
  const entries = new Map<ConfigKey, ConfigEntry>();
  const problems: ConfigProblem[] = [];
  const unknown: UnknownVariable[] = [];
  const known = new Map(CONFIG_KEYS.map((key) => [variableOf(key), key]));
  for (const [name, text] of Object.entries(env)) {
    if (text === undefined || !name.startsWith(PREFIX)) continue;
    const key = known.get(name);
    if (key === undefined) {
      if (looksLikeConfiguration(name)) problems.push(unknownVariable(name, [...known.keys()]));
      else if (!isOther(name)) unknown.push(nearMiss(name, [...OTHER_VARIABLES, ...known.keys()]));
      continue;
    }
    const setting = settingOf(key);
    // Set to nothing is not set, but for a list nothing is the strictest thing to mean.
    if (text === "" && setting.type !== "strings") continue;
    const value = valueFromText(setting, text);
    if (isWrong(value)) problems.push(wrongValue(name, null, key, value));
    else entries.set(key, { value, place: name, line: null });
  }
  return { source: "environment", entries, problems, unknown };
}

/** `flags` maps keys to values as typed, or as text. */
export function flagLayer(flags: Readonly<Record<string, unknown>>): ConfigLayer {
  const entries = new Map<ConfigKey, ConfigEntry>();
  const problems: ConfigProblem[] = [];
  const place = "command line";
  for (const [key, raw] of Object.entries(flags)) {
    if (raw === undefined) continue;
    if (!isConfigKey(key)) {
      problems.push(unknownKey(place, null, key));
      continue;
    }
    const setting = settingOf(key);
    const value = typeof raw === "string" ? valueFromText(setting, raw) : valueFromToml(setting, asToml(raw));
    if (isWrong(value)) problems.push(wrongValue(place, null, key, value));
    else entries.set(key, { value, place, line: null });
  }
  return { source: "flag", entries, problems };
}

function looksLikeConfiguration(variable: string): boolean {
  if (NOT_CONFIGURATION.has(variable)) return false;
  return CONFIG_SECTIONS.some((section) => variable.startsWith(`COTENANT_${section.toUpperCase()}_`));
}

function isOther(variable: string): boolean {
  return OTHER_VARIABLES.includes(variable) || NOT_CONFIGURATION.has(variable);
}

/** Compared without what all of them begin with: else any two would be near each other. */
function nearMiss(variable: string, known: readonly string[]): UnknownVariable {
  const bare = (name: string) => name.slice(PREFIX.length);
  const near = nearest(bare(variable), known.map(bare));
  return { variable: printable(variable, 100), nearest: near === null ? null : `${PREFIX}${near}` };
}

function wrongSection({ file, text }: TomlDocument, section: string, content: unknown): ConfigProblem | null {
  if (CONFIG_SECTIONS.includes(section) && isTable(content)) return null;
  const line = lineOf(text, [section]);
  const shown = printable(section, 60);
  if (CONFIG_SECTIONS.includes(section)) {
    return { place: file, line, key: section, nearest: null, message: `[${shown}] must be a table` };
  }
  if (section === "agent" || section === "behavior") {
    const message = `[${shown}] belongs into agent.toml, not into config.toml`;
    return { place: file, line, key: section, nearest: null, message };
  }
  // A key without its section is as likely as a misspelt section.
  const homes = CONFIG_KEYS.filter((key) => nameInSection(key) === section);
  const near = homes[0] ?? nearest(section, CONFIG_SECTIONS);
  const message = isTable(content)
    ? `there is no section [${shown}]`
    : `there is no key "${shown}" outside a section`;
  return { place: file, line, key: shown, nearest: near, message };
}

function unknownKey(place: string, line: number | null, key: string): ConfigProblem {
  const section = sectionOf(key);
  const siblings = CONFIG_KEYS.filter((other) => sectionOf(other) === section);
  const elsewhere = CONFIG_KEYS.find((other) => nameInSection(other) === nameInSection(key));
  const name = nearest(nameInSection(key), siblings.map(nameInSection));
  const near = name === null ? (elsewhere ?? nearest(key, CONFIG_KEYS)) : `${section}.${name}`;
  const shown = printable(key, 100);
  return { place, line, key: shown, nearest: near, message: `there is no key ${shown}` };
}

function unknownVariable(variable: string, known: readonly string[]): ConfigProblem {
  const shown = printable(variable, 100);
  const message = "no configuration key has this variable";
  return { place: shown, line: null, key: shown, nearest: nearest(variable, known), message };
}

function wrongValue(
  place: string,
  line: number | null,
  key: ConfigKey,
  value: { wrong: string; nearest?: string },
): ConfigProblem {
  return { place, line, key, nearest: value.nearest ?? null, message: `${key} ${value.wrong}` };
}
