import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { killAllWithHome } from "../../../src/features/harnesses/real-canary/room";
import { removeTree } from "../../support/remove-tree";
import type { Layer, Task } from "../layer";
import { type Group, type Seen, Trial } from "./cells/cell";
import { CELLS, GROUPS } from "./cells/groups";
import { install, NoRegistry } from "./install";
import type { AgentProgram, Installed } from "./program";
import { PROGRAMS } from "./programs/all";
import { keep } from "./sightings";

/**
 * The agents' own programs, at pinned versions from the npm registry, without a person, an account or a network: a
 * scripted model has them write, wait, commit and die, and each promise of the guard is looked at with each of them.
 * `--case claude`, `--case claude/kill` and `--case kill` look at a part of it.
 */
export const harnesses: Layer = {
  name: "harnesses",
  unit: "cells",
  inTest: 0,
  inVerify: 0,
  share: 0,
  isOptIn: true,
  mustMove: ["passed"],
  async prove(task) {
    const { programs, groups, cell } = wantedBy(task.only);
    let missing: string | null = null;
    for (const program of programs) {
      try {
        const installed = await install(program, task.isLatest);
        await tryProgram(task, program, installed, { groups, cell });
      } catch (error) {
        if (!(error instanceof NoRegistry)) throw error;
        missing = `${program.title} could not be installed: ${error.message}`;
        say(missing);
      }
    }
    if (missing !== null && task.tried === 0) task.skip(missing);
  },
};

/** `<program>`, `<program>/<cell>` or `<cell>`. */
function wantedBy(only: string | null) {
  const words = only?.split("/") ?? [];
  const named = PROGRAMS.filter(({ name }) => words.includes(name));
  const cell = CELLS.find(({ name }) => words.includes(name))?.name ?? null;
  if (words.length !== named.length + (cell === null ? 0 : 1)) {
    const names = [...PROGRAMS, ...CELLS].map(({ name }) => name);
    throw new Error(`--case ${only}: there are ${names.join(", ")}`);
  }
  return {
    programs: named.length > 0 ? named : PROGRAMS,
    groups: GROUPS.filter(({ cells }) => cell === null || cells.some(({ name }) => name === cell)),
    cell,
  };
}

async function tryProgram(
  task: Task,
  program: AgentProgram,
  installed: Installed,
  { groups, cell }: { readonly groups: readonly Group[]; readonly cell: string | null },
): Promise<void> {
  const startedMs = performance.now();
  const room = join(task.scratch, program.name);
  mkdirSync(room);
  say(`\n${program.title} ${installed.version}`);
  const trial = new Trial(program, installed, room, task.isRecording);
  try {
    for (const group of groups) {
      await trial.play(group);
      for (const { name, title } of group.cells)
        if (cell === null || cell === name) report(task, program, { name, title }, trial.seen.get(name)!);
    }
  } finally {
    killAllWithHome(join(room, "home"));
    removeTree(room);
  }
  if (task.isRecording) keep(trial);
  say(`  ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
}

const WORDS = { passed: "passed", failed: "FAILED", impossible: "not possible there" };

function report(
  task: Task,
  program: AgentProgram,
  { name, title }: { readonly name: string; readonly title: string },
  { outcome, note, detail }: Seen,
): void {
  task.tried++;
  task.count(WORDS[outcome]);
  say(`  ${WORDS[outcome].padEnd(18)} ${name.padEnd(16)} ${note}${detail === "" ? "" : ` (${detail})`}`);
  if (outcome !== "failed") return;
  task.broke(
    `${program.title}: ${title}: ${note}${detail === "" ? "" : `\n  ${detail}`}`,
    `npm run verify -- --layer harnesses --case ${program.name}/${name}`,
  );
}

/** While it goes on: all of it takes many minutes. */
function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
