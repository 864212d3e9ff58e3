import {
  CONFIG_KEYS,
  CONFIG_SECTIONS,
  type ConfigValue,
  nameInSection,
  sectionOf,
  settingOf,
} from "./schema";
import type { Setting } from "./setting";
import { describeValue, tomlOf } from "./values";

const INTRODUCTION = `# cotenant's configuration for this repository.
#
# Every line that sets something is commented out and shows the default: remove the # to change it.
# The first source that sets a value wins: a flag, the environment (COTENANT_<SECTION>_<KEY>), this file,
# ~/.config/cotenant/config.toml, /etc/cotenant/config.toml.
`;
const WIDTH = 110;

/** The config.toml that `init` writes: every key with its meaning and its default, none of them set. */
export function configTemplate(): string {
  const sections = CONFIG_SECTIONS.map((section) => {
    const keys = CONFIG_KEYS.filter((key) => sectionOf(key) === section);
    const entries = keys.map((key) => entry(nameInSection(key), settingOf(key)));
    return `[${section}]\n${entries.join("\n")}`;
  });
  return [INTRODUCTION, ...sections].join("\n");
}

function entry(name: string, setting: Setting): string {
  return `${comment(setting.meaning + choice(setting))}# ${name} = ${tomlOf(shown(setting))}\n`;
}

/** The default; where there is none, what one could write. */
function shown(setting: Setting): ConfigValue {
  if (setting.default !== null) return setting.default;
  if (setting.type === "string") return setting.example;
  return setting.type === "int" ? setting.max : null;
}

/** What else it could be, where that says more than the default does. */
function choice(setting: Setting): string {
  if (setting.type === "int") return ` From ${setting.min} to ${setting.max}.`;
  const isPlain = setting.type === "bool" || setting.type === "string";
  if (isPlain || (setting.type === "enum" && setting.values.length === 1)) return "";
  const text = describeValue(setting);
  return ` ${text[0]!.toUpperCase()}${text.slice(1)}.`;
}

function comment(text: string): string {
  let lines = "";
  let line = "#";
  for (const word of text.split(" ")) {
    if (line.length + 1 + word.length > WIDTH) {
      lines += `${line}\n`;
      line = "#";
    }
    line += ` ${word}`;
  }
  return `${lines}${line}\n`;
}
