import type { Command, Context } from "../../../cli/grammar/command";
import { usage } from "../../../cli/grammar/parse";
import { parseSince } from "../../../cli/grammar/since";
import { pensFor } from "../../../cli/terminal/charts";
import { isTty } from "../../../cli/terminal/terminal";
import { Statistics } from "../../../coordinator/statistics";
import { isFrom, noteUnreadable, SINCE_FLAG } from "./event-filter";
import { statsJson, statsText } from "./stats-report";

const DEFAULT_TOP = 10;
const MOST_TOP = 10_000;

export const command: Command = {
  usage: "stats [--since <when>] [--top <n>]",
  about:
    "Adds up the log: grants, renewals, releases, expiries, steals, evictions and transfers per kind of key and per\nagent, how long things are held and waited for, and the busiest keys. Contention is what the log knows of it:\ngrants that had waited, live leases stolen, lapsed ones taken over. It cannot know refusals, nor waits that ended\nwithout a grant: neither changes anything, so neither is logged.",
  flags: {
    since: SINCE_FLAG,
    top: { value: "<n>", meaning: `how many keys and agents to list (default ${DEFAULT_TOP})` },
  },
  examples: ["cotenant stats", "cotenant stats --since 1d --top 5 --json"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const top = parsed.whole("top") ?? DEFAULT_TOP;
    if (top < 1 || top > MOST_TOP)
      throw usage(`--top is from 1 to ${MOST_TOP}, not ${top}`, "cotenant stats --help");
    const workspace = await context.workspace();
    const { coordinator, surroundings } = workspace;
    const since = parsed.text("since");
    const from = since === undefined ? undefined : parseSince(since, surroundings.platform.clock.wallMs());
    const stats = new Statistics();
    const progress = new Progress(context);
    const isCounted = from === undefined ? () => true : isFrom(from);
    const onUnreadable = noteUnreadable(workspace);
    const wanted = { ground: true, onUnreadable, ...(from === undefined ? {} : { from }) };
    for await (const event of coordinator.history(wanted)) {
      if (isCounted(event)) stats.take(event);
      else stats.prepare(event);
      progress.step();
    }
    progress.done();
    return {
      data: statsJson(stats, top),
      text: statsText(stats, top, context.terminal, pensFor(surroundings.env)),
    };
  },
};

const SHOWN_EVERY = 100_000;

/** A word now and then, where somebody looks and it takes a while. */
class Progress {
  readonly #say: (text: string) => void;
  #read = 0;

  constructor({ terminal, quiet }: Context) {
    this.#say = quiet || !isTty(2) ? () => {} : (text) => terminal.err(text);
  }

  step(): void {
    this.#read++;
    if (this.#read % SHOWN_EVERY === 0) this.#say(`\r${this.#read} events read…`);
  }

  done(): void {
    if (this.#read >= SHOWN_EVERY) this.#say("\r\x1b[K");
  }
}
