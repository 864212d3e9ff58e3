import type { Command, Context } from "../../../cli/grammar/command";
import { usage } from "../../../cli/grammar/parse";
import { pensFor } from "../../../cli/terminal/charts";
import { isTty } from "../../../cli/terminal/terminal";
import { stats } from "../operations/events";
import { SINCE_FLAG } from "./events";
import { statsJson, statsText } from "./stats-output";

const DEFAULT_TOP = 10;
const MOST_TOP = 10_000;

export const command: Command = {
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
    const progress = new Progress(context);
    const found = await stats(workspace, { since: parsed.text("since"), onRead: () => progress.step() });
    progress.done();
    return {
      data: statsJson(found, top),
      text: statsText(found, top, context.terminal, pensFor(workspace.surroundings.env)),
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
