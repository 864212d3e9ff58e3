import { tomlOf } from "../../config/values";
import type { Command } from "../command";
import { knownKey, survey } from "../configuring";
import { settingJson } from "./config-show";

export const command: Command = {
  usage: "config get <key>",
  about: "Prints one setting's value, and nothing else.",
  flags: {},
  examples: ["cotenant config get coordination.default_ttl_secs"],
  words: { min: 1, max: 1 },
  completes: ["setting"],
  async run(context, parsed) {
    const key = knownKey(parsed.words[0]!);
    const { config } = await survey(context);
    const setting = settingJson(config, key);
    const { value } = setting;
    return {
      data: { setting: { key, ...setting } },
      text: typeof value === "string" ? value : value === null ? "" : tomlOf(value),
    };
  },
};
