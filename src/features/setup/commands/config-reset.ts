import type { Command } from "../../../cli/grammar/command";
import { changeSetting, GLOBAL } from "./config-set";
import { survey, targetOf } from "./configuring";

export const command: Command = {
  usage: "config reset [--global] <key>",
  about: "Takes one setting out of the file, so that the next source or the default decides again.",
  flags: GLOBAL,
  examples: ["cotenant config reset coordination.default_ttl_secs"],
  words: { min: 1, max: 1 },
  completes: ["setting"],
  mendsConfig: true,
  async run(context, parsed) {
    const surveyed = await survey(context);
    const [name] = parsed.words as [string];
    const target = targetOf(surveyed, name, parsed.has("global"), ["reset"]);
    const changed = await changeSetting(context, surveyed, target, parsed.has("global"), null);
    const text = changed
      ? `${name} is no longer set in ${target.file}`
      : `${name} was not set in ${target.file}`;
    return { data: { key: name, file: target.file, changed }, text: context.quiet ? "" : text };
  },
};
