import { closeSync, openSync } from "node:fs";
import { Prng } from "../../../testing/simulator";
import type { Layer, Task } from "../layer";
import { CommandLines } from "./command-lines";
import { Finding } from "./finding";
import { ForgedLogs } from "./forged-logs";
import { HookInputs } from "./hook-inputs";
import { HostileIndexes } from "./indexes";
import { LogLines } from "./log-lines";
import { HostileLogs } from "./logs";
import { Names } from "./names";
import { RealProgram } from "./program";
import { SmallFiles } from "./small-files";
import type { Target } from "./target";

/**
 * How often each target has its turn. A whole log takes a thousand times as long as a name: first both are tried
 * alike, later the time goes where an input costs least.
 */
interface Turn {
  readonly target: Target;
  readonly early: number;
  readonly late: number;
}

const EARLY_UNITS = 2_000;
/** Nothing that is asked here takes longer, on a busy machine either: it is a hang. */
const MOST_MS = 60_000;
const MOST_MEMORY = 2 ** 31;

export const hostile: Layer = {
  name: "hostile",
  unit: "inputs",
  inTest: 300,
  inVerify: 100_000,
  share: 0.05,
  mustMove: [
    "corpus: log-lines",
    "corpus: git-names",
    "damaged log refused",
    "log recovered",
    "torn tail set aside",
    "newer log refused",
    "log changed under its index",
    "forged log used",
    "forged log refused",
    "forged line taken",
    "index: census mutated",
    "index: file rewritten",
    "index: applied mutated",
    "index: ended mutated",
    "index: indefinite mutated",
    "index: synced mutated",
    "command line accepted",
    "command line: E_USAGE",
    "command line: E_PATH_ESCAPE",
    "file: secrets",
    "file: tickets",
    "file: worktree",
    "file: issue",
    "file: config",
    "file: agent-file",
    "hook input passed over",
    "hook input answered",
    "shell command read",
    "keys accepted",
    "paths refused",
    "refused as Git refuses it",
    "through a process",
  ],
  prove,
};

async function prove(task: Task): Promise<void> {
  emptyInput();
  const program = await task.program();
  const names = new Names(task.scratch);
  const lines = new LogLines();
  const files = new SmallFiles(task.scratch);
  const count = (what: string) => task.count(what);
  await settle(task, "corpora", async () => {
    await names.checkCorpora(count);
    lines.checkCorpora(count);
    await files.checkCorpora(new Prng(task.seed), count);
  });
  const turns: Turn[] = [
    turn("names", names, 40, 7_700),
    turn("log lines", lines, 18, 1_800),
    turn("command lines", new CommandLines(task.scratch), 20, 1_500),
    turn("small files", files, 8, 40),
    turn("hook inputs", new HookInputs(task.scratch), 8, 300),
    turn("logs", new HostileLogs(), 5, 40),
    turn("forged logs", new ForgedLogs(), 3, 20),
    turn("indexes", new HostileIndexes(), 5, 18),
    turn("processes", new RealProgram(program, task.scratch), 1, 2),
  ];
  for (let unit = 0; task.goesOn; unit++) {
    const prng = new Prng(task.seed).stream(`hostile ${unit}`);
    const { target } = chosen(turns, unit < EARLY_UNITS ? "early" : "late", prng);
    await settle(task, `input ${unit}, ${target.name}`, () => target.try(prng, count));
    task.tried++;
  }
  const { rss } = process.memoryUsage();
  if (rss > MOST_MEMORY) task.broke(`${Math.round(rss / 2 ** 20)} MiB of memory in the end`, replay(task));
}

/** For commands that read it directly: the lowest free number is the one that was closed. */
function emptyInput(): void {
  closeSync(0);
  if (openSync("/dev/null", "r") !== 0) throw new Error("standard input is still something else");
}

function turn(name: string, target: Omit<Target, "name">, early: number, late: number): Turn {
  return { target: { name, try: (prng, count) => target.try(prng, count) }, early, late };
}

function chosen(turns: readonly Turn[], when: "early" | "late", prng: Prng): Turn {
  let lot = prng.below(turns.reduce((sum, one) => sum + one[when], 0));
  for (const one of turns) {
    if (lot < one[when]) return one;
    lot -= one[when];
  }
  throw new Error("a lot beyond all turns");
}

async function settle(task: Task, what: string, trial: () => Promise<void> | void): Promise<void> {
  const startedMs = performance.now();
  try {
    await trial();
  } catch (error) {
    // An error of the layer's own is one, too: nothing may look like a pass that was none.
    const told = error instanceof Finding ? error.message : error instanceof Error ? error.stack : error;
    task.broke(`${what}: ${told}`, replay(task));
  }
  const tookMs = performance.now() - startedMs;
  if (tookMs > MOST_MS && what !== "corpora")
    task.broke(`${what}: took ${Math.round(tookMs)} ms`, replay(task));
}

/** Rooms are used for several inputs: all up to this one are repeated, and it is met in the same state. */
function replay({ seed, tried }: Task): string {
  return `npm run verify -- --layer hostile --seed ${seed} --least ${tried + 1}`;
}
