import type { Command } from "../command";

export const command: Command = {
  usage: "demo",
  about: "x",
  flags: {},
  examples: ["cotenant demo"],
  words: { min: 0, max: 0 },
  async run() {
    return { data: {}, text: "" };
  },
};
