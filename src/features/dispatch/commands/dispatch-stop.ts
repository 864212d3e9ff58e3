import type { Command } from "../../../cli/grammar/command";
import { stopDispatch } from "../operations";
import { runJson } from "./dispatching";

export const command: Command = {
  usage: "dispatch stop [--now]",
  about:
    "Asks every run of dispatch in this repository to take no more issues: it ends when those under way are done. With\n--now agents are stopped at once, their work is kept on its branch, and their claims are given back.",
  flags: { now: { meaning: "stop the agents that are at work" } },
  examples: ["cotenant dispatch stop  # exits 4", "cotenant dispatch stop --now  # exits 4"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const how = parsed.has("now") ? "now" : "drain";
    const asked = await stopDispatch(await context.workspace(), how);
    const what =
      how === "now" ? "to stop its agents and end" : "to take no more, and end after those under way";
    return {
      data: { how, runs: asked.map(runJson) },
      text: [
        ...asked.map(({ state }) => `asked ${state.runId} (pid ${state.process.pid}) ${what}`),
        ...(how === "now" ? [] : ["  to stop the agents that are at work: cotenant dispatch stop --now"]),
      ].join("\n"),
    };
  },
};
