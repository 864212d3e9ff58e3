import type { Command, Context } from "../../../cli/grammar/command";
import { columns, count, paint } from "../../../cli/terminal/render";
import { AGENT_KEYS, inspectAgentFile, isAgentKey } from "../../../config/agent-file";
import { type Config, type ConfigOrigin, configFiles, overruledText } from "../../../config/load";
import { configError } from "../../../config/problem";
import {
  CONFIG_KEYS,
  CONFIG_SECTIONS,
  type ConfigKey,
  isConfigKey,
  sectionOf,
  settingOf,
} from "../../../config/schema";
import { tomlOf } from "../../../config/values";
import { missedDaemon } from "../../../daemon/missed";
import { printable } from "../../../kernel/ids";
import { knownKey, resetSetting, type SettingSet, setSetting, survey } from "../operations";

export const show: Command = {
  usage: "config show [<section>|<key>] [--changed]",
  about:
    "Shows every setting, what it is, and where it came from: a flag, the environment, this repository's\n.cotenant/config.toml, your own config.toml or agent.toml, the machine's, or the default.",
  flags: { changed: { meaning: "only what is not the default" } },
  examples: ["cotenant config show", "cotenant config show coordination --changed"],
  words: { min: 0, max: 1 },
  completes: ["setting"],
  async run(context, parsed) {
    const { config, problems: wrong, repository } = await survey(context.surroundings());
    const own = await inspectAgentFile(context.surroundings());
    const problems = [...wrong, ...own.problems];
    const here = `${repository?.worktreeRoot ?? ""}/.cotenant/`;
    const shown = (place: string) =>
      place.startsWith(here) ? `.cotenant/${place.slice(here.length)}` : place;
    const { keys, ownKeys } = selected(parsed.words[0]);
    const rows = [
      ...keys.map((key) => ({ key: key as string, ...settingJson(config, key) })),
      ...own.settings.filter(({ key }) => ownKeys.includes(key)),
    ].filter(({ source }) => !parsed.has("changed") || source !== "default");
    const { terminal } = context;
    const table = columns(
      terminal,
      ["KEY", "VALUE", "FROM"],
      rows.map((row) => [
        row.key,
        row.value === null ? "(not set)" : tomlOf(row.value),
        (isConfigKey(row.key) ? origins(config, row.key) : [row])
          .map(({ place, line }) => (line === null ? place : `${shown(place)}:${line}`))
          .join(", "),
      ]),
      1,
    );
    const remarks = [
      ...problems.map(
        ({ place, line, message }) => `${line === null ? place : `${place}:${line}`}: ${message}`,
      ),
      ...config.untrusted.map(
        ({ key, does, place, line }) =>
          `${line === null ? place : `${place}:${line}`} ${does === "names" ? "names" : "sets"} ${key}, which is not honoured before 'cotenant trust'`,
      ),
      ...config.overruled.map(overruledText),
    ].map((text) => paint(terminal, "yellow", text));
    return {
      data: { settings: rows, untrusted: untrustedJson(config), problems },
      text: [rows.length === 0 ? "everything is at its default" : table, ...remarks].join("\n"),
    };
  },
};

/** Those of the configuration, and those of agent.toml. */
function selected(word: string | undefined): {
  readonly keys: readonly ConfigKey[];
  readonly ownKeys: readonly string[];
} {
  if (word === undefined) return { keys: CONFIG_KEYS, ownKeys: AGENT_KEYS };
  const ownKeys = AGENT_KEYS.filter((key) => key === word || sectionOf(key) === word);
  if (ownKeys.length > 0) return { keys: [], ownKeys };
  const keys = CONFIG_SECTIONS.includes(word)
    ? CONFIG_KEYS.filter((key) => sectionOf(key) === word)
    : [knownKey(word)];
  return { keys, ownKeys };
}

/** Of a list that sources add to, all of them. */
function origins(config: Config, key: ConfigKey): readonly Pick<ConfigOrigin, "place" | "line">[] {
  const all = config.layers.flatMap(({ entries }) => entries.get(key) ?? []);
  return settingOf(key).tighten === "adding" && all.length > 0 ? all : [config.origin(key)];
}

export function settingJson(config: Config, key: ConfigKey) {
  const { source, place, line } = config.origin(key);
  return { value: config.values[key], source, place, line, default: settingOf(key).default };
}

export function untrustedJson(config: Config) {
  return config.untrusted.map(({ key, value, instead, place, line }) => ({
    key,
    value,
    instead,
    place,
    line,
  }));
}

export const get: Command = {
  usage: "config get <key>",
  about: "Prints one setting's value, and nothing else.",
  flags: {},
  examples: ["cotenant config get coordination.default_ttl_secs"],
  words: { min: 1, max: 1 },
  completes: ["setting"],
  async run(context, parsed) {
    const setting = await settingNamed(context, parsed.words[0]!);
    const { value } = setting;
    return {
      data: { setting },
      text: typeof value === "string" ? value : value === null ? "" : tomlOf(value),
    };
  },
};

async function settingNamed(context: Context, word: string) {
  if (!isAgentKey(word)) {
    const key = knownKey(word);
    const { config } = await survey(context.surroundings());
    return { key, ...settingJson(config, key) };
  }
  const { settings, problems } = await inspectAgentFile(context.surroundings());
  if (problems.length > 0) throw configError(problems);
  return settings.find(({ key }) => key === word)!;
}

const GLOBAL = {
  global: { meaning: "your own configuration (config.toml, agent.toml) instead of the repository's" },
};

function placeOf(context: Context) {
  return { surroundings: () => context.surroundings(), open: () => context.workspace() };
}

export const set: Command = {
  usage: "config set [--global] <key> <value>",
  about:
    "Sets one setting in this repository's .cotenant/config.toml, or with --global in your own. Comments and\neverything else in the file stay. A list is separated by commas and replaces the one\nthat was there, a table is name=value,name=value.",
  flags: GLOBAL,
  examples: [
    "cotenant config set coordination.default_ttl_secs 1200",
    "cotenant config set --global agent.id agent:alice",
  ],
  words: { min: 2, max: 2 },
  completes: ["setting", "setting-value"],
  mendsConfig: true,
  async run(context, parsed) {
    const [key, text] = parsed.words as [string, string];
    const done = await setSetting(placeOf(context), { key, text, isGlobal: parsed.has("global") });
    const { value, toml, file, hasChanged: changed } = done;
    const words = [
      changed ? `${key} = ${toml} in ${file}` : `${key} was ${toml} already`,
      ...(await afterwards(context, key, done)),
    ];
    return { data: { key, value, file, changed }, text: context.quiet ? "" : words.join("\n") };
  },
};

/** What the new value comes to. */
async function afterwards(
  context: Context,
  key: string,
  { trust, overruledBy }: SettingSet,
): Promise<string[]> {
  if (trust === "given")
    return ["it needs trust: this clone trusts it now; other clones run 'cotenant trust'"];
  if (trust === "waits") return ["it needs trust: not honoured until a person runs 'cotenant trust'"];
  if (key === "coordination.auto_renew_leases") {
    const missed = await missedDaemon(await context.workspace());
    if (missed?.what === "renewals") return [`it takes a daemon: ${missed.next}`];
  }
  return overruledBy === null ? [] : [`${overruledBy} stands above it and still decides`];
}

export const reset: Command = {
  usage: "config reset [--global] <key>",
  about: "Takes one setting out of the file, so that the next source or the default decides again.",
  flags: GLOBAL,
  examples: ["cotenant config reset coordination.default_ttl_secs"],
  words: { min: 1, max: 1 },
  completes: ["setting"],
  mendsConfig: true,
  async run(context, parsed) {
    const key = parsed.words[0]!;
    const request = { key, isGlobal: parsed.has("global") };
    const { file, hasChanged: changed } = await resetSetting(placeOf(context), request);
    const text = changed ? `${key} is no longer set in ${file}` : `${key} was not set in ${file}`;
    return { data: { key, file, changed }, text: context.quiet ? "" : text };
  },
};

export const showHierarchy: Command = {
  usage: "config show-hierarchy",
  about:
    "Shows the types of issues (type: labels) from the broadest to the narrowest, as types.hierarchy has them.\n'cotenant config set types.hierarchy …' changes it, under the lease scope:types.",
  flags: {},
  examples: ["cotenant config show-hierarchy"],
  words: { min: 0, max: 0 },
  mendsConfig: true,
  async run(context) {
    const { config } = await survey(context.surroundings());
    const strategic = config.values["types.strategic"];
    const levels = config.values["types.hierarchy"].map((line, level) => ({
      level,
      types: line.split(" "),
    }));
    const known = new Set(levels.flatMap(({ types }) => types));
    const name = (type: string) =>
      strategic.includes(type)
        ? `${printable(type)} ${paint(context.terminal, "dim", "(strategic)")}`
        : printable(type);
    const lines = levels.map(
      ({ level, types }) =>
        `${"   ".repeat(Math.max(0, level - 1))}${level === 0 ? "" : "└─ "}${types.map(name).join(", ")}`,
    );
    const strangers = strategic.filter((type) => !known.has(type));
    const { source, place } = config.origin("types.hierarchy");
    return {
      data: { levels, strategic, source, place },
      text: [
        ...lines,
        ...(strangers.length === 0 ? [] : [`strategic, and on no level: ${strangers.map(name).join(", ")}`]),
      ].join("\n"),
    };
  },
};

export const validate: Command = {
  usage: "config validate",
  about:
    "Reads every source of configuration and says what is wrong in it, with file, line and the nearest known key.",
  flags: {},
  examples: ["cotenant config validate"],
  words: { min: 0, max: 0 },
  async run(context) {
    const { config, problems, question } = await survey(context.surroundings());
    if (problems.length > 0) {
      if (!context.json)
        for (const { place, line, message, nearest } of problems) {
          const near = nearest === null ? "" : `; did you mean ${nearest}?`;
          context.note(`${line === null ? place : `${place}:${line}`}: ${message}${near}`);
        }
      throw configError(problems);
    }
    const files = configFiles(question).map(({ file }) => file);
    const present: string[] = [];
    for (const file of files) if ((await question.platform.files.stat(file)) !== null) present.push(file);
    const lines = [
      present.length === 0
        ? "no configuration files; the defaults are in effect"
        : `valid: ${present.join(", ")}`,
      ...(config.untrusted.length === 0
        ? []
        : [`${count(config.untrusted.length, "value")} not honoured until a person runs 'cotenant trust'`]),
    ];
    return { data: { files: present, untrusted: untrustedJson(config) }, text: lines.join("\n") };
  },
};
