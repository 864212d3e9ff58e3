import type { Command } from "../../../cli/grammar/command";
import { columns, paint } from "../../../cli/terminal/render";
import { AGENT_KEYS, inspectAgentFile } from "../../../config/agent-file";
import { type Config, type ConfigOrigin, overruledText } from "../../../config/load";
import {
  CONFIG_KEYS,
  CONFIG_SECTIONS,
  type ConfigKey,
  isConfigKey,
  sectionOf,
  settingOf,
} from "../../../config/schema";
import { tomlOf } from "../../../config/values";
import { knownKey, survey } from "./configuring";

export const command: Command = {
  usage: "config show [<section>|<key>] [--changed]",
  about:
    "Shows every setting, what it is, and where it came from: a flag, the environment, this repository's\n.cotenant/config.toml, your own config.toml or agent.toml, the machine's, or the default.",
  flags: { changed: { meaning: "only what is not the default" } },
  examples: ["cotenant config show", "cotenant config show coordination --changed"],
  words: { min: 0, max: 1 },
  completes: ["setting"],
  async run(context, parsed) {
    const { config, problems: wrong, repository } = await survey(context);
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
