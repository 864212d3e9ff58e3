import type { Command } from "../../cli/grammar/command";
import { thisBuild } from "../build";
import { startDaemon } from "../life";
import { daemonPlace } from "../place";
import { RENEWS_NOTHING } from "./daemon-status";

export const command: Command = {
  usage: "daemon start",
  about:
    "Starts the daemon of this repository in the background, or finds the one that is running. It renews leases of living\nsessions if coordination.auto_renew_leases is on, gathers many changes into one write to the disk, and answers programs over a\nsocket. Everything works without it. One of another build is replaced.",
  flags: {},
  examples: ["cotenant daemon start"],
  words: { min: 0, max: 0 },
  async run(context) {
    const { repository, surroundings, config } = await context.workspace();
    const place = daemonPlace(repository.controlDir);
    const { isNew, replaced, record } = await startDaemon(place, surroundings, context.program, thisBuild());
    if (!context.quiet && !config.values["coordination.auto_renew_leases"]) context.note(RENEWS_NOTHING);
    const how = isNew ? "started" : "running already";
    const instead = replaced === null ? "" : `, in the place of ${replaced} of another build`;
    return {
      data: { pid: record.pid, is_new: isNew, replaced, socket: record.socket, log: place.log },
      text: context.quiet ? "" : `${how}: process ${record.pid}${instead}`,
    };
  },
};
