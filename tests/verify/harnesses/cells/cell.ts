import { Hangup } from "../../../../src/features/harnesses/real-canary/conversation";
import type { AgentProgram, Installed } from "../program";
import { Stage, type StageOptions } from "../stage";

/** One promise, to be kept by every program. */
export interface Cell {
  /** In `--case` and in the results. */
  readonly name: string;
  /** A row of the table in docs/AGENTS.md. */
  readonly title: string;
}

/** `impossible`: the program has no such thing. */
export type Outcome = "passed" | "failed" | "impossible";

export interface Seen {
  readonly outcome: Outcome;
  /** How it was kept, what went wrong, or what the program lacks. */
  readonly note: string;
  /** What else helps to find out why: mostly what the model was told. */
  readonly detail: string;
}

/** Cells that are looked at together, because starting a program takes longer than anything else. */
export interface Group {
  readonly cells: readonly Cell[];
  play(trial: Trial): Promise<void>;
}

/** What was promised did not happen. */
export class Broken extends Error {
  readonly detail: string;

  constructor(message: string, detail: string) {
    super(message);
    this.detail = detail;
  }
}

/** The program has no such thing, as it turns out. */
export class Lacking extends Error {}

export function expect(isSo: boolean, otherwise: string, detail = ""): asserts isSo {
  if (!isSo) throw new Broken(otherwise, detail);
}

/** Enough of a text for a report, on one line. */
export function brief(text: string, most = 240): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most)}…` : line;
}

/** One program on trial. Gathers what was seen, cell by cell. */
export class Trial {
  readonly program: AgentProgram;
  readonly installed: Installed;
  readonly room: string;
  readonly isRecording: boolean;
  readonly seen = new Map<string, Seen>();

  constructor(program: AgentProgram, installed: Installed, room: string, isRecording: boolean) {
    this.program = program;
    this.installed = installed;
    this.room = room;
    this.isRecording = isRecording;
  }

  /** Sets a stage for as long as `act` takes. */
  async on(options: StageOptions, act: (stage: Stage) => Promise<void>): Promise<void> {
    const stage = await Stage.set(this.program, this.installed, this.room, options);
    try {
      await act(stage);
    } finally {
      stage.clear();
    }
  }

  /** Looks at one cell; `act` answers how the promise was kept, and throws where it was not. */
  async check({ name }: Cell, act: () => Promise<string>): Promise<void> {
    try {
      this.seen.set(name, { outcome: "passed", note: await act(), detail: "" });
    } catch (error) {
      if (error instanceof Lacking) this.lacks({ name }, error.message);
      else this.seen.set(name, failure(error));
    }
  }

  lacks({ name }: Pick<Cell, "name">, note: string): void {
    this.seen.set(name, { outcome: "impossible", note, detail: "" });
  }

  /** Plays a group; what it had no chance to look at has failed with it. */
  async play({ cells, play }: Group): Promise<void> {
    let why: unknown = new Broken("nobody looked at it", "");
    try {
      await play(this);
    } catch (error) {
      why = error;
    }
    for (const { name } of cells) if (!this.seen.has(name)) this.seen.set(name, failure(why));
  }
}

function failure(error: unknown): Seen {
  const outcome = "failed";
  if (error instanceof Broken)
    return { outcome, note: brief(error.message), detail: brief(error.detail, MOST_DETAIL) };
  if (error instanceof Hangup)
    return { outcome, note: "the program ended too early", detail: brief(error.message, MOST_DETAIL) };
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { outcome, note: "it could not be tried", detail: brief(detail, MOST_DETAIL) };
}

const MOST_DETAIL = 800;
