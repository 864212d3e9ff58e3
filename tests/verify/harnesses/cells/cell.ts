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
}

/** Cells that are looked at together, because starting a program takes longer than anything else. */
export interface Group {
  readonly cells: readonly Cell[];
  play(trial: Trial): Promise<void>;
}

/** What was promised did not happen. */
export class Broken extends Error {}

export function expect(isSo: boolean, otherwise: string): asserts isSo {
  if (!isSo) throw new Broken(otherwise);
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
      this.seen.set(name, { outcome: "passed", note: await act() });
    } catch (error) {
      this.seen.set(name, { outcome: "failed", note: reasonOf(error) });
    }
  }

  lacks({ name }: Cell, note: string): void {
    this.seen.set(name, { outcome: "impossible", note });
  }

  /** Plays a group; what it had no chance to look at has failed with it. */
  async play({ cells, play }: Group): Promise<void> {
    let why = "nobody looked at it";
    try {
      await play(this);
    } catch (error) {
      why = reasonOf(error);
    }
    for (const { name } of cells)
      if (!this.seen.has(name)) this.seen.set(name, { outcome: "failed", note: why });
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return brief(String(error), 600);
  const where =
    error.name === "Error" || error instanceof Broken ? "" : ` ${error.stack?.split("\n")[1]?.trim()}`;
  return brief(`${error.message}${where}`, 600);
}
