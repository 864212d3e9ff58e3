import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../bundle";
import type { Outcome, Trial } from "./cells/cell";
import { CELLS } from "./cells/groups";
import { PROGRAMS } from "./programs/all";

/** What was last seen of one promise with one program. */
export interface Sighting {
  readonly outcome: Outcome;
  readonly note: string;
  readonly version: string;
  /** The day. */
  readonly date: string;
}

/** What docs/AGENTS.md shows. Titles are in it, so that whoever writes that page needs nothing else. */
interface SightingsFile {
  readonly programs: readonly { readonly name: string; readonly title: string }[];
  readonly cells: readonly { readonly name: string; readonly title: string }[];
  readonly seen: Record<string, Record<string, Sighting>>;
}

const FILE = join(ROOT, "tests/verify/harnesses/seen.json");

/** Adds what a trial has seen to what is on record; cells that were not looked at stay as they are. */
export function keep({ program, installed, seen }: Trial): void {
  const before = existsSync(FILE) ? (JSON.parse(readFileSync(FILE, "utf8")) as SightingsFile).seen : {};
  const date = new Date().toISOString().slice(0, 10);
  const fresh = [...seen].map(([cell, { outcome, note }]) => [
    cell,
    { outcome, note, version: installed.version, date },
  ]);
  const all = { ...before, [program.name]: { ...before[program.name], ...Object.fromEntries(fresh) } };
  const record: SightingsFile = {
    programs: PROGRAMS.map(({ name, title }) => ({ name, title })),
    cells: CELLS.map(({ name, title }) => ({ name, title })),
    // In a fixed order, so that a change is easy to read.
    seen: Object.fromEntries(
      PROGRAMS.filter(({ name }) => all[name] !== undefined).map(({ name }) => [
        name,
        Object.fromEntries(
          CELLS.filter((cell) => all[name]?.[cell.name] !== undefined).map((cell) => [
            cell.name,
            all[name]![cell.name]!,
          ]),
        ),
      ]),
    ),
  };
  writeFileSync(FILE, `${JSON.stringify(record, null, 2)}\n`);
}
