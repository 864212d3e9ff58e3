import type { Command, Context, Output } from "../../../cli/grammar/command";
import { usage } from "../../../cli/grammar/parse";
import { Ending, LinePrinter } from "../../../cli/terminal/streaming";
import type { LoggedEvent } from "../../../coordinator/contract";
import { type EventFilter, FILTER_FLAGS, noteUnreadable, readEventFilter } from "./event-filter";
import { eventJson, eventLine } from "./event-text";

/** What `--follow` shows of the past without being asked. */
const BEFORE_FOLLOWING = 10;
const MOST = 1_000_000;

export const command: Command = {
  usage:
    "events [--follow] [--limit <n>] [--since <when>] [--key …] [--agent …] [--type …] [--issue …] [--path …]",
  about:
    "Shows the audit log: who did what to which lease, when and why, oldest first, archived segments included. With\n--json each event is one line of JSON. Filters add up. Refusals are not in the log: they changed nothing.",
  flags: {
    ...FILTER_FLAGS,
    limit: { value: "<n>", meaning: "only the newest n of those that fit" },
    follow: { meaning: `go on with new events until Ctrl-C (begins with the newest ${BEFORE_FOLLOWING})` },
  },
  examples: [
    "cotenant events --limit 20",
    "cotenant events --since 1h --agent agent:ada --type acquired",
    "cotenant events --path src --json",
    "cotenant events --follow",
  ],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const limit = parsed.whole("limit");
    if (limit !== undefined && (limit < 1 || limit > MOST))
      throw usage(`--limit is from 1 to ${MOST}, not ${limit}`, "cotenant events --help");
    const filter = await readEventFilter(await context.workspace(), parsed);
    const follows = parsed.has("follow");
    const newest = limit ?? (follows && filter.from === undefined ? BEFORE_FOLLOWING : undefined);
    return stream(context, filter, newest, follows);
  },
};

async function stream(
  context: Context,
  filter: EventFilter,
  newest: number | undefined,
  follows: boolean,
): Promise<Output> {
  const workspace = await context.workspace();
  const { coordinator } = workspace;
  const printer = new LinePrinter(context.terminal);
  const ending = new Ending();
  const show = (event: LoggedEvent) =>
    printer.line(context.json ? JSON.stringify(eventJson(event)) : eventLine(event, context.terminal));
  let last = 0;
  let shown = 0;
  const where = (event: LoggedEvent) => {
    last = Math.max(last, event.sequence);
    return filter.isWanted(event);
  };
  const { from } = filter;
  const wanted = {
    where,
    onUnreadable: noteUnreadable(workspace),
    ...(from === undefined ? {} : { from }),
    ...(newest === undefined ? {} : { newest }),
  };
  try {
    for await (const event of coordinator.history(wanted)) {
      if (ending.isHere || !printer.isHeard) break;
      show(event);
      shown++;
    }
    printer.flush();
    if (shown === 0 && !follows && !context.json && !context.quiet) context.note("no event in the log fits");
    if (follows && printer.isHeard && !ending.isHere)
      await follow(context, ending, last, (event) => {
        if (!filter.isWanted(event)) return true;
        show(event);
        printer.flush();
        return printer.isHeard;
      });
  } finally {
    ending.close();
  }
  return { data: {}, text: "", isStreamed: true };
}

/** Shows what is logged from now on. */
async function follow(
  context: Context,
  ending: Ending,
  after: number,
  show: (event: LoggedEvent) => boolean,
): Promise<void> {
  const { followLog } = await import("../../../daemon/log-follower");
  const hear = (event: LoggedEvent) => {
    if (!ending.isHere && !show(event)) ending.end();
  };
  const subscription = await followLog(await context.workspace(), hear, after);
  await ending.wait();
  subscription.close();
}
