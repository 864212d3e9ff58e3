import * as fs from "node:fs";

/** One write, as the agent that did it tells it. */
export interface Entry {
  readonly agent: string;
  readonly file: string;
  readonly phase: "begin" | "end";
  /** How long cotenant's log was then: what had been granted and ended. */
  readonly log: number;
}

/**
 * What agents write down about their own writes, all in one file: a line before each, and a line after it. Lines are
 * appended whole, so that their order is the order of things.
 */
export class Journal {
  readonly #path: string | null;
  readonly #agent: string;
  readonly #log: string;

  constructor(path: string | null, agent: string, log: string) {
    this.#path = path;
    this.#agent = agent;
    this.#log = log;
  }

  around(file: string, write: () => void): void {
    this.#note(file, "begin");
    write();
    this.#note(file, "end");
  }

  #note(file: string, phase: Entry["phase"]): void {
    if (this.#path === null) return;
    const log = fs.existsSync(this.#log) ? fs.statSync(this.#log).size : 0;
    const entry: Entry = { agent: this.#agent, file, phase, log };
    fs.appendFileSync(this.#path, `${JSON.stringify(entry)}\n`);
  }
}

export function readJournal(path: string): Entry[] {
  if (!fs.existsSync(path)) return [];
  const lines = fs.readFileSync(path, "utf8").split("\n");
  // Whoever was killed in the middle of a line left half of one; nobody writes behind it in the same line.
  return lines.flatMap((line) => {
    try {
      return line === "" ? [] : [JSON.parse(line) as Entry];
    } catch {
      return [];
    }
  });
}
