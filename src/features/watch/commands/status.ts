import type { Command, Context, Output, Parsed } from "../../../cli/grammar/command";
import { usage } from "../../../cli/grammar/parse";
import { leaseTable, paint, statusJsonIn } from "../../../cli/terminal/render";
import type { Terminal } from "../../../cli/terminal/terminal";
import { pauseData, pauseText } from "../../../kernel/pause";
import { count } from "../../../kernel/printing";
import { elsewhereJson, elsewhereLines } from "../../ledger/commands/output";
import { ticketJson, ticketKeys } from "../../locks/commands/output";
import { accessJson, accessText } from "../../worktrees/access";
import { type Status, status } from "../operations/status";

const DEFAULT_INTERVAL_SECS = 2;
const MOST_INTERVAL_SECS = 3_600;

export const command: Command = {
  about:
    "Shows who holds what in this repository, who waits, and what needs a person. Writes nothing. With --watch it\nstays: on a terminal it redraws in place, elsewhere it prints again when something changed, until Ctrl-C.",
  flags: {
    watch: { meaning: "go on showing it" },
    interval: { value: "<secs>", meaning: `look at least this often (default ${DEFAULT_INTERVAL_SECS})` },
  },
  examples: ["cotenant status", "cotenant status --json", "cotenant status --watch --interval 5"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const intervalMs = intervalOf(parsed) * 1000;
    if (parsed.has("watch")) return watch(context, intervalMs);
    const now = await status(await context.workspace());
    return {
      // Only one of the two is asked for, and there may be many leases.
      get data() {
        return statusData(now);
      },
      get text() {
        return statusLines(now, context.terminal).join("\n");
      },
    };
  },
};

async function watch(context: Context, intervalMs: number): Promise<Output> {
  const { watchStatus } = await import("./status-watch");
  await watchStatus(context, intervalMs);
  return { data: {}, text: "", isStreamed: true };
}

function intervalOf(parsed: Parsed): number {
  const secs = parsed.whole("interval");
  if (secs === undefined) return DEFAULT_INTERVAL_SECS;
  if (!parsed.has("watch")) throw usage("--interval says how often to look, but --watch is missing", HELP);
  if (secs >= 1 && secs <= MOST_INTERVAL_SECS) return secs;
  throw usage(`--interval is from 1 to ${MOST_INTERVAL_SECS}, not ${secs}`, HELP);
}

const HELP = "cotenant status --help";

export function statusData(status: Status): Record<string, unknown> {
  const { place, me } = status;
  return {
    repository: { worktree_root: place.root, control_directory: place.control },
    agent: me === null ? null : { agent_id: me.agentId, session_id: me.sessionId },
    worktree: { worktree_id: place.worktreeId, ...accessJson(place.access) },
    leases: status.leases.map(statusJsonIn(status.ledger)),
    ...elsewhereJson(status.ledger),
    lapsed: status.lapsed,
    waiters: status.waiters.map(ticketJson),
    sequence: status.sequence,
    next_token: status.nextToken,
    paused: status.pause === null ? null : pauseData(status.pause),
    needs_a_person: status.findings,
  };
}

export function statusLines(status: Status, terminal: Terminal): string[] {
  const { place, me, leases, lapsed, waiters, findings, ledger, pause } = status;
  return [
    ...(pause === null ? [] : [paint(terminal, "yellow", pauseText(pause))]),
    `${place.root} (${place.worktreeId})${me === null ? "" : `, as ${me.agentId}`}`,
    ...(place.access === "shared"
      ? [paint(terminal, "yellow", `this worktree is ${accessText(place.access)}`)]
      : []),
    ...(leases.length === 0 ? ["no leases"] : leaseTable(terminal, leases, me, ledger).split("\n")),
    ...elsewhereLines(terminal, ledger),
    ...waiters.map((ticket) => `waiting #${ticket.number}: ${ticket.agentId} for ${ticketKeys(ticket)}`),
    ...(lapsed === 0 ? [] : [paint(terminal, "dim", `${count(lapsed, "lease")} lapsed and free to take`)]),
    ...findings.flatMap(({ message, next }) => [
      paint(terminal, "yellow", `! ${message}`),
      `  next: ${next}`,
    ]),
    ...(findings.length === 0 ? [paint(terminal, "dim", "nothing needs a person")] : []),
  ];
}
