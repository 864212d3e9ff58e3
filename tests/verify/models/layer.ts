import { execFile } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "../bundle";
import type { Layer, Task } from "../layer";

const run = promisify(execFile);

/** A Promela model beside this file. `MUTANT=n` takes the guard away that its header describes under that number. */
export interface Model {
  readonly name: string;
  readonly mutants: number;
  /** Bounds for `npm run verify`. */
  readonly larger: readonly string[];
  /** Processes may end in the middle, e.g. by a power cut: waiting for ever is no error then. */
  readonly mayStop: boolean;
}

export const MODELS: readonly Model[] = [
  { name: "mutex", mutants: 1, larger: ["PROCS=4"], mayStop: false },
  { name: "log-index", mutants: 2, larger: ["LINES=6"], mayStop: false },
  { name: "fencing", mutants: 2, larger: ["HOLDERS=4", "GRANTS=6"], mayStop: true },
  { name: "all-or-nothing", mutants: 1, larger: ["AGENTS=4"], mayStop: false },
  { name: "sync-after-unlock", mutants: 2, larger: ["LINES=5"], mayStop: true },
  { name: "ledger", mutants: 4, larger: ["MACHINES=3", "PUSHES=4"], mayStop: true },
];

/** What Spin said: how many states there are, and the assertion that one of them breaks. */
export interface Searched {
  readonly states: number;
  readonly violation: string | null;
}

/** Searches every state of the model. Throws when the search was not complete. */
export async function search(
  model: Model,
  mutant: number,
  bounds: readonly string[],
  folder: string,
): Promise<Searched> {
  mkdirSync(folder, { recursive: true });
  const source = join(ROOT, "tests/verify/models", `${model.name}.pml`);
  const defines = [`MUTANT=${mutant}`, ...bounds].map((define) => `-D${define}`);
  await run("spin", ["-a", ...defines, source], { cwd: folder });
  // A small model is searched in less time than it would take to make the search faster.
  const effort = bounds.length === 0 ? "-O0" : "-O1";
  await run("gcc", [effort, "-DSAFETY", "-w", "-o", "pan", "pan.c"], { cwd: folder });
  const { stdout } = await run("./pan", ["-m1000000", ...(model.mayStop ? ["-E"] : [])], { cwd: folder });
  const states = /^\s*(\d+) states, stored/m.exec(stdout)?.[1];
  const errors = /errors: (\d+)/.exec(stdout)?.[1];
  if (states === undefined || errors === undefined || /max search depth too small|out of memory/.test(stdout))
    throw new Error(`${model.name}: the search did not end well:\n${stdout}`);
  const violation = errors === "0" ? null : (/^pan:\d+: (.*)$/m.exec(stdout)?.[1] ?? stdout);
  return { states: Number(states), violation };
}

/** How many mutants the header of a model's file describes. */
export function describedMutants(model: Model): number {
  const text = readFileSync(join(ROOT, "tests/verify/models", `${model.name}.pml`), "utf8");
  return [...text.matchAll(/^ \* MUTANT \d+: /gm)].length;
}

/** The protocols where promises could break, every interleaving of small ones; and the same with a guard removed. */
export const models: Layer = {
  name: "models",
  unit: "states",
  inTest: 0,
  inVerify: 0,
  share: 0,
  mustMove: ["models searched", "larger models searched", "mutants caught"],
  async prove(task) {
    // As small as `npm test` had them, every one; then as large as there is time for.
    for (const model of MODELS) await proveModel(task, model);
    for (const model of MODELS) await proveLarger(task, model);
  },
};

async function proveModel(task: Task, model: Model): Promise<void> {
  const folder = (mutant: number) => join(task.scratch, `${model.name}-${mutant}`);
  const replay = "npm run verify -- --layer models";
  if (!isOn(task)) return;
  const { states, violation } = await search(model, 0, [], folder(0));
  task.tried += states;
  task.count("models searched");
  if (violation !== null) task.broke(`${model.name}: ${violation}`, replay);
  for (let mutant = 1; mutant <= model.mutants; mutant++) {
    const broken = await search(model, mutant, [], folder(mutant));
    if (broken.violation !== null) task.count("mutants caught");
    else task.broke(`${model.name}: mutant ${mutant} breaks nothing`, replay);
  }
}

async function proveLarger(task: Task, model: Model): Promise<void> {
  if (!isOn(task)) return;
  const { states, violation } = await search(
    model,
    0,
    model.larger,
    join(task.scratch, `${model.name}-larger`),
  );
  task.tried += states;
  task.count("larger models searched");
  if (violation !== null) task.broke(`${model.name}: ${violation}`, "npm run verify -- --layer models");
}

function isOn(task: Task): boolean {
  task.isCutShort ||= task.isTimeUp;
  return !task.isTimeUp;
}
