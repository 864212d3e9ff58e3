import type { Command } from "../../../cli/grammar/command";
import { paint } from "../../../cli/terminal/render";
import { printable } from "../../../kernel/ids";
import { survey } from "./configuring";

export const command: Command = {
  usage: "config show-hierarchy",
  about:
    "Shows the types of issues (type: labels) from the broadest to the narrowest, as types.hierarchy has them.\n'cotenant config set types.hierarchy …' changes it, under the lease scope:types.",
  flags: {},
  examples: ["cotenant config show-hierarchy"],
  words: { min: 0, max: 0 },
  mendsConfig: true,
  async run(context) {
    const { config } = await survey(context);
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
