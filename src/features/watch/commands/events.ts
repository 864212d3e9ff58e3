import type { Command, Context, Flag, Output } from "../../../cli/grammar/command";
import { Ending, LinePrinter } from "../../../cli/terminal/streaming";
import type { LoggedEvent } from "../../../coordinator/contract";
import { EVENT_TYPES, type Events, events } from "../operations/events";
import { eventJson, eventLine } from "./event-output";

export const SINCE_FLAG: Flag = {
  value: "<when>",
  meaning: "only from then on: a duration ago (10m, 2h, 1d), an instant, or a sequence number",
};

/** What `--follow` shows of the past without being asked. */
const BEFORE_FOLLOWING = 10;

export const command: Command = {
  about:
    "Shows the audit log: who did what to which lease, when and why, oldest first, archived segments included. With\n--json each event is one line of JSON. Filters add up. Refusals are not in the log: they changed nothing.",
  flags: {
    key: { value: "<key>", meaning: "only about this key (file:src/app.ts), or this path", completes: "key" },
    agent: { value: "<type:name>", meaning: "only by or about this agent", completes: "agent" },
    type: {
      value: "<type>",
      meaning: "only events whose type begins so: claim.acquired, claim., acquired",
      choices: EVENT_TYPES,
    },
    issue: { value: "<id>", meaning: "only about this issue", completes: "issue" },
    path: {
      value: "<prefix>",
      meaning: "only about this file or directory, and what is in it",
      completes: "path",
    },
    since: SINCE_FLAG,
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
    const since = parsed.text("since");
    const follows = parsed.has("follow");
    const limit = parsed.whole("limit") ?? (follows && since === undefined ? BEFORE_FOLLOWING : undefined);
    const found = await events(await context.workspace(), {
      since,
      limit,
      key: parsed.text("key"),
      agent: parsed.text("agent"),
      type: parsed.text("type"),
      issue: parsed.text("issue"),
      path: parsed.text("path"),
    });
    return stream(context, found, follows);
  },
};

async function stream(context: Context, { logged, follow }: Events, follows: boolean): Promise<Output> {
  const printer = new LinePrinter(context.terminal);
  const ending = new Ending();
  const show = (event: LoggedEvent) =>
    printer.line(context.json ? JSON.stringify(eventJson(event)) : eventLine(event, context.terminal));
  let shown = 0;
  try {
    for await (const event of logged) {
      if (ending.isHere || !printer.isHeard) break;
      show(event);
      shown++;
    }
    printer.flush();
    if (shown === 0 && !follows && !context.json && !context.quiet) context.note("no event in the log fits");
    if (follows && printer.isHeard && !ending.isHere) {
      const subscription = await follow((event) => {
        if (ending.isHere) return;
        show(event);
        printer.flush();
        if (!printer.isHeard) ending.end();
      });
      await ending.wait();
      subscription.close();
    }
  } finally {
    ending.close();
  }
  return { data: {}, text: "", isStreamed: true };
}
