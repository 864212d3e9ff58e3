import { stopDaemon } from "../../daemon/life";
import { daemonPlace } from "../../daemon/place";
import type { Command } from "../command";

export const command: Command = {
  usage: "daemon stop",
  about:
    "Ends the daemon of this repository, once it has answered what it was asked. No lease is lost by that.",
  flags: {},
  examples: ["cotenant daemon stop"],
  words: { min: 0, max: 0 },
  async run(context) {
    const { repository, surroundings } = await context.workspace();
    const stopped = await stopDaemon(surroundings.platform, daemonPlace(repository.controlDir));
    const text = stopped === null ? "no daemon is running" : `ended: process ${stopped.pid}`;
    return {
      data: { was_running: stopped !== null, pid: stopped?.pid ?? null },
      text: context.quiet ? "" : text,
    };
  },
};
