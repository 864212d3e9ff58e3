import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../bundle";
import type { Layer, Task } from "../layer";
import LEFT_TO_VERIFY from "../left-to-verify.json";
import type { Report } from "./reporter";

/** How a file of tests shows that `npm test` gives it less than all: it tries a sample, by itself or by a helper. */
const SAMPLES = /from "\.[./\w-]*\/(?:sample|one-in|property)"/;
/** Their commands are processes here; in `npm test` many of them are not. */
const BY_PROCESSES = /^tests\/(?:cli|scenarios|ledger)\//;
/** Layers bring more of the same. */
const OF_LAYERS = /^tests\/verify\/(?!models)/;
/** So long at most where no time is given, on a busy machine. */
const MOST_MS = 60 * 60_000;
/** So much of its time does Vitest get: less than a layer, which is dropped then. */
const LATE = 1.06;

/**
 * The plain tests without what `npm test` spares: first all of what it tries a sample of and the files that it leaves out;
 * then, with the time that is left, every command by a process of its own.
 */
export const wholeTests: Layer = {
  name: "whole tests",
  unit: "test files",
  inTest: 0,
  inVerify: Number.MAX_SAFE_INTEGER,
  share: 0.7,
  isFirst: true,
  mustMove: ["tests passed"],
  async prove(task) {
    const { spared, byProcesses } = filesToRun(task);
    await runAll(task, "whole", spared, {});
    await runAll(task, "by processes", byProcesses, { TEST_PROCESSES: "1" });
  },
};

function filesToRun({ only }: Task) {
  const all = readdirSync(join(ROOT, "tests"), { recursive: true, encoding: "utf8" })
    .map((name) => `tests/${name.replaceAll("\\", "/")}`)
    .filter((name) => name.endsWith(".test.ts") && (only === null || name.includes(only)))
    .filter((name) => !OF_LAYERS.test(name));
  const isSpared = (file: string) =>
    LEFT_TO_VERIFY.includes(file) || SAMPLES.test(readFileSync(join(ROOT, file), "utf8"));
  return { spared: all.filter(isSpared), byProcesses: all.filter((file) => BY_PROCESSES.test(file)) };
}

/** In one run of Vitest, which waits only once for its slowest files. */
async function runAll(
  task: Task,
  how: string,
  files: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<void> {
  if (files.length === 0) return;
  if (!task.goesOn) return task.count(`no time to run ${how}`, files.length);
  const report = join(task.scratch, "report.jsonl");
  rmSync(report, { force: true });
  const untilMs = Math.ceil(Date.now() + Math.min(task.leftMs, MOST_MS));
  const told = await vitest(task, files, { ...env, TEST_REPORT: report, TEST_UNTIL_MS: String(untilMs) });
  const reports = readReports(report);
  const replay = (file: string) => `npm run verify -- --layer "whole tests" --case ${file}`;
  for (const { file, passed, failures } of reports) {
    task.count("tests passed", passed);
    for (const what of failures) task.broke(`${file}: ${what}`, replay(file));
  }
  const whole = new Set(reports.filter(({ left }) => left === 0).map(({ file }) => file));
  const unseen = files.filter((file) => !whole.has(file));
  task.tried += whole.size;
  if (unseen.length === 0) return;
  if (!task.goesOn) task.count(`no time to run ${how}`, unseen.length);
  else for (const file of unseen) task.broke(`${file}: did not run\n${told}`, replay(file));
}

/** Vitest ends with a failure where a test failed; which one is in the report. */
function vitest(task: Task, files: readonly string[], more: NodeJS.ProcessEnv): Promise<string> {
  const seed = String(task.seed % 1_000_000);
  const leftMs = Number(more["TEST_UNTIL_MS"]) - Date.now();
  // With a place for its files already, Vitest would take itself for one of its own workers, and clear nothing of the environment.
  const { TEST_MEMORY: memory, ...inherited } = process.env;
  const env = {
    ...inherited,
    ...more,
    TEST_WHOLE: "1",
    TEST_SAMPLE_SEED: seed,
    NODE_EXTRA_CA_CERTS: "",
    ...(memory === undefined ? {} : { TEST_MEMORY_IN: memory }),
  };
  const args = [
    "node_modules/vitest/vitest.mjs",
    "run",
    ...files,
    "--reporter=tests/verify/whole/reporter.ts",
  ];
  // A test that does not come to its end then must not take what the others found with it.
  const setting = { cwd: ROOT, env, timeout: Math.ceil(leftMs * LATE), maxBuffer: 64 * 2 ** 20 };
  return new Promise((resolve) => {
    execFile(process.execPath, args, setting, (_, stdout, stderr) => resolve(`${stdout}${stderr}`));
  });
}

function readReports(file: string): Report[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Report);
}
