import type { Command } from "../../cli/grammar/command";
import { asksOverHttp, NOTHING_WRITTEN } from "../http-door";
import { startedBy } from "../in-front";
import { stopDaemon } from "../life";
import { daemonPlace } from "../place";

export const command: Command = {
  usage: "daemon stop",
  about:
    "Ends the daemon of this repository, once it has answered what it was asked. No lease ends by that; but leases that it has\nrenewed run out, unless their sessions renew them.",
  flags: {},
  examples: ["cotenant daemon stop"],
  words: { min: 0, max: 0 },
  async run(context) {
    const workspace = await context.workspace();
    const { repository, surroundings } = workspace;
    const stopped = await stopDaemon(surroundings.platform, daemonPlace(repository.controlDir));
    const text = stopped === null ? "no daemon is running" : `ended: process ${stopped.pid}`;
    if (!context.quiet && asksOverHttp(workspace)) context.note(`${NOTHING_WRITTEN}: cotenant daemon start`);
    const setting = await startedBy(workspace);
    if (!context.quiet && setting !== null)
      context.note(`${setting} is on: the next command that changes leases starts one again`);
    return {
      data: { was_running: stopped !== null, pid: stopped?.pid ?? null },
      text: context.quiet ? "" : text,
    };
  },
};
