import type { Command } from "../../../cli/grammar/command";
import { printable } from "../../../kernel/ids";
import { duration, shellWord } from "../../../kernel/printing";
import type { BlockerReport } from "../contention";
import { blockedContentions } from "../operations";
import { agentsOf, subject } from "../words";

export const command: Command = {
  about:
    "The reports of everybody who is blocked: a file that was still held at the one retry. Each stays until the\nagent asks again, or ends; once the file is free, it says that the agent may go on. An agent that ended while the file was\nheld has not made its change: the report then says so, and goes when the file is free.",
  flags: {},
  examples: ["cotenant guard report", "cotenant guard report --json"],
  words: { min: 0, max: 0 },
  async run(context) {
    const blocked = await blockedContentions(await context.workspace());
    const lines = blocked.flatMap(({ contention, reports, isFree, isOver }) => [
      `${isFree ? printable(contention.path, 200) : subject(contention)}: ${contention.agentId} ${isOver ? "was still blocked when it ended: its change was not made" : isFree ? "may go on" : "waits for instruction"}`,
      ...reports.map((report) => ownerLine(report, isFree, reports.length > 1)),
      isOver
        ? `  next: see to it that what it was to do here is done once ${agentsOf([contention])} has committed or stopped; then this report goes`
        : isFree
          ? `  next: tell ${contention.agentId} to go on; this report goes when it asks again, or ends`
          : `  next: let ${agentsOf([contention])} commit or stop, then run 'cotenant guard retry ${shellWord(contention.path)}'`,
    ]);
    return {
      data: {
        reports: blocked.flatMap(({ reports }) => reports),
        blocked: blocked.flatMap(({ contention, reports, isFree, isOver }) =>
          reports.map(({ blocked_file }) => ({
            blocked_file,
            ...(blocked_file === contention.path ? {} : { wanted: contention.path }),
            agent_id: contention.agentId,
            session_id: contention.sessionId,
            free: isFree,
            ended: isOver,
          })),
        ),
      },
      text: lines.length === 0 ? "nobody is blocked" : lines.join("\n"),
    };
  },
};

function ownerLine(
  { blocked_file, owner, lock_age_secs, last_heartbeat_at }: BlockerReport,
  isFree: boolean,
  isOneOfMany: boolean,
): string {
  const age = duration(lock_age_secs * 1000);
  const since = isFree ? `since ${age} ago` : `for ${age}`;
  const file = isOneOfMany ? ` of ${printable(blocked_file, 200)}` : "";
  return `  ${isFree ? "last owner" : "owner"}${file}: ${owner}, ${since}, last heard of ${last_heartbeat_at ?? "never"}`;
}
