import type { Command } from "../../../cli/grammar/command";
import { count } from "../../../cli/terminal/render";
import { configFiles } from "../../../config/load";
import { configError } from "../../../config/problem";
import { untrustedJson } from "./config-show";
import { survey } from "./configuring";

export const command: Command = {
  usage: "config validate",
  about:
    "Reads every source of configuration and says what is wrong in it, with file, line and the nearest known key.",
  flags: {},
  examples: ["cotenant config validate"],
  words: { min: 0, max: 0 },
  async run(context) {
    const { config, problems, question } = await survey(context);
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
