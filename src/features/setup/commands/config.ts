import type { Command, Context } from "../../../cli/grammar/command";
import { columns, paint } from "../../../cli/terminal/render";
import { missedDaemon } from "../../../daemon/missed";
import { printable } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import {
  oneSetting,
  resetSetting,
  type SettingSet,
  setSetting,
  shownSettings,
  survey,
  tomlOf,
  untrustedIn,
  validateSettings,
} from "../operations";

export const show: Command = {
  positional: "[<section>|<key>]",
  about:
    "Shows every setting, what it is, and where it came from: a flag, the environment, this repository's\n.cotenant/config.toml, your own config.toml or agent.toml, the machine's, or the default.",
  flags: { changed: { meaning: "only what is not the default" } },
  examples: ["cotenant config show", "cotenant config show coordination --changed"],
  words: { min: 0, max: 1 },
  completes: ["setting"],
  async run(context, parsed) {
    const found = await shownSettings(context.surroundings(), parsed.words[0]);
    const { config, problems, repository, remarks } = found;
    const here = `${repository?.worktreeRoot ?? ""}/.cotenant/`;
    const near = (place: string) =>
      place.startsWith(here) ? `.cotenant/${place.slice(here.length)}` : place;
    const rows = found.settings.filter(
      ({ setting }) => !parsed.has("changed") || setting.source !== "default",
    );
    const { terminal } = context;
    const table = columns(
      terminal,
      ["KEY", "VALUE", "FROM"],
      rows.map(({ setting: { key, value }, origins }) => [
        key,
        value === null ? "(not set)" : tomlOf(value),
        origins.map(({ place, line }) => (line === null ? place : `${near(place)}:${line}`)).join(", "),
      ]),
      1,
    );
    const settings = rows.map(({ setting }) => setting);
    return {
      data: { settings, untrusted: untrustedIn(config), problems },
      text: [
        rows.length === 0 ? "everything is at its default" : table,
        ...remarks.map((text) => paint(terminal, "yellow", text)),
      ].join("\n"),
    };
  },
};

export const get: Command = {
  positional: "<key>",
  about: "Prints one setting's value, and nothing else.",
  flags: {},
  examples: ["cotenant config get coordination.default_ttl_secs"],
  words: { min: 1, max: 1 },
  completes: ["setting"],
  async run(context, parsed) {
    const setting = await oneSetting(context.surroundings(), parsed.words[0]!);
    const { value } = setting;
    return {
      data: { setting },
      text: typeof value === "string" ? value : value === null ? "" : tomlOf(value),
    };
  },
};

const GLOBAL = {
  global: { meaning: "your own configuration (config.toml, agent.toml) instead of the repository's" },
};

export const set: Command = {
  positional: "<key> <value>",
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
    const done = await setSetting(context, { key, text, isGlobal: parsed.has("global") });
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
  positional: "<key>",
  about: "Takes one setting out of the file, so that the next source or the default decides again.",
  flags: GLOBAL,
  examples: ["cotenant config reset coordination.default_ttl_secs"],
  words: { min: 1, max: 1 },
  completes: ["setting"],
  mendsConfig: true,
  async run(context, parsed) {
    const key = parsed.words[0]!;
    const request = { key, isGlobal: parsed.has("global") };
    const { file, hasChanged: changed } = await resetSetting(context, request);
    const text = changed ? `${key} is no longer set in ${file}` : `${key} was not set in ${file}`;
    return { data: { key, file, changed }, text: context.quiet ? "" : text };
  },
};

export const showHierarchy: Command = {
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
  about:
    "Reads every source of configuration and says what is wrong in it, with file, line and the nearest known key.",
  flags: {},
  examples: ["cotenant config validate"],
  words: { min: 0, max: 0 },
  async run(context) {
    const tell = (words: string) => {
      if (!context.json) context.note(words);
    };
    const { files, untrusted } = await validateSettings(context.surroundings(), tell);
    const lines = [
      files.length === 0
        ? "no configuration files; the defaults are in effect"
        : `valid: ${files.join(", ")}`,
      ...(untrusted.length === 0
        ? []
        : [`${count(untrusted.length, "value")} not honoured until a person runs 'cotenant trust'`]),
    ];
    return { data: { files, untrusted: untrustedIn({ untrusted }) }, text: lines.join("\n") };
  },
};
