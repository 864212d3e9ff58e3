import type { Command, Context } from "../../../cli/grammar/command";
import { inspectAgentFile, isAgentKey } from "../../../config/agent-file";
import { configError } from "../../../config/problem";
import { tomlOf } from "../../../config/values";
import { settingJson } from "./config-show";
import { knownKey, survey } from "./configuring";

export const command: Command = {
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
    const { config } = await survey(context);
    return { key, ...settingJson(config, key) };
  }
  const { settings, problems } = await inspectAgentFile(context.surroundings());
  if (problems.length > 0) throw configError(problems);
  return settings.find(({ key }) => key === word)!;
}
