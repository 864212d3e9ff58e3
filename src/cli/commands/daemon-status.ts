import { type Standing, standingOf } from "../../daemon/life";
import { daemonPlace } from "../../daemon/place";
import type { Command } from "../command";
import { count, duration } from "../render";

export const command: Command = {
  usage: "daemon status",
  about: "Says whether the daemon of this repository runs, since when, and what it looks after.",
  flags: {},
  examples: ["cotenant daemon status", "cotenant daemon status --json"],
  words: { min: 0, max: 0 },
  async run(context) {
    const { repository, surroundings } = await context.workspace();
    const place = daemonPlace(repository.controlDir);
    const standing = await standingOf(surroundings.platform, place);
    const record = standing.state === "none" ? null : standing.record;
    return {
      data: {
        state: standing.state,
        pid: record?.pid ?? null,
        socket: record?.socket ?? null,
        log: place.log,
        daemon: standing.state === "running" ? standing.said : null,
      },
      text: context.quiet ? "" : words(standing),
    };
  },
};

function words(standing: Standing): string {
  if (standing.state === "none") return "no daemon is running; everything works without it";
  if (standing.state === "silent")
    return `a daemon has the lock and does not answer${standing.record === null ? "" : ` (process ${standing.record.pid})`}: commands go on without it; 'cotenant daemon stop' ends it`;
  const { record, said } = standing;
  const kept = said["kept"] as { leases: number; renewed: number };
  return [
    `process ${record.pid}, version ${record.version}, up ${duration(Number(said["uptime_secs"]) * 1000)}`,
    `  ${count(Number(said["clients"]) - 1, "client")} connected, ${count(kept.leases, "lease")} kept, ${count(kept.renewed, "renewal")} made`,
    `  log: ${said["log"]}`,
  ].join("\n");
}
