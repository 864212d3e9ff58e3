import { seenContentions } from "../../guard/overview";
import { reachOf } from "../../guard/yielding";
import { printable } from "../../kernel/ids";
import type { Command } from "../command";
import { duration } from "../render";

export const command: Command = {
  usage: "guard report",
  about:
    "The reports of everybody who is blocked: a file that was still held at the one retry. Each stays until the\nagent asks again, or ends; once the file is free, it says that the agent may go on. An agent that ended while the file was\nheld has not made its change: the report then says so, and goes when the file is free.",
  flags: {},
  examples: ["cotenant guard report", "cotenant guard report --json"],
  words: { min: 0, max: 0 },
  async run(context) {
    const { coordinator, config } = await context.workspace();
    const reach = reachOf(config.values["guard.across_worktrees"]);
    const blocked = (await seenContentions(coordinator, reach)).filter(
      ({ contention: { state } }) => state !== "waiting",
    );
    const lines = blocked.flatMap(({ contention, report, isFree, isOver }) => [
      `${printable(report.blocked_file, 200)}: ${contention.agentId} ${isOver ? "was still blocked when it ended: its change was not made" : isFree ? "may go on" : "waits for instruction"}`,
      `  ${isFree ? "last owner" : "owner"}: ${report.owner}, ${isFree ? "since" : "for"} ${duration(report.lock_age_secs * 1000)}${isFree ? " ago" : ""}, last heard of ${report.last_heartbeat_at ?? "never"}`,
      isOver
        ? `  next: see to it that what it was to do here is done once ${report.owner} has committed or stopped; then this report goes`
        : isFree
          ? `  next: tell ${contention.agentId} to go on; this report goes when it asks again, or ends`
          : `  next: let ${report.owner} commit or stop, then run 'cotenant guard retry ${printable(report.blocked_file, 200)}'`,
    ]);
    return {
      data: {
        reports: blocked.map(({ report }) => report),
        blocked: blocked.map(({ contention, isFree, isOver }) => ({
          blocked_file: contention.path,
          agent_id: contention.agentId,
          session_id: contention.sessionId,
          free: isFree,
          ended: isOver,
        })),
      },
      text: lines.length === 0 ? "nobody is blocked" : lines.join("\n"),
    };
  },
};
