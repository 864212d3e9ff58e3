import type { Command, Context, Output, Parsed } from "../../../cli/grammar/command";
import { usage } from "../../../cli/grammar/parse";
import { lookAround, statusData, statusLines } from "./status-report";

const DEFAULT_INTERVAL_SECS = 2;
const MOST_INTERVAL_SECS = 3_600;

export const command: Command = {
  usage: "status [--watch [--interval <secs>]]",
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
    const status = await lookAround(await context.workspace());
    return { data: statusData(status), text: statusLines(status, context.terminal).join("\n") };
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
