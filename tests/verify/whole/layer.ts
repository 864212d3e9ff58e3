import { execFile } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { Prng } from "../../../testing/simulator/prng";
import { ROOT } from "../bundle";
import type { Layer, Task } from "../layer";
import LEFT_TO_VERIFY from "../left-to-verify.json";

/** How a file of tests shows that `npm test` gives it less than all: it tries a sample, by itself or by a helper. */
const SAMPLES = /from "\.[./\w-]*\/(?:sample|one-in|property)"/;
/** Their commands are processes here; in `npm test` many of them are not. */
const BY_PROCESSES = /^tests\/(?:cli|scenarios|ledger)\//;
/** Layers bring more of the same. */
const OF_LAYERS = /^tests\/verify\/(?!models)/;
/**
 * Between two runs of Vitest it is seen whether the time is up. The slowest file of a run is waited for, so few runs do more
 * than many: with a little time they are small, with more they are large.
 */
const FILES_PER_MINUTE = 5;
const LEAST_FILES = 6;
/** So long at most for one run, on a busy machine. */
const MOST_MS = 15 * 60_000;

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

/** Each part in another order each time, for a short run has no time for all. */
function filesToRun({ seed, only }: Task) {
  const all = readdirSync(join(ROOT, "tests"), { recursive: true, encoding: "utf8" })
    .map((name) => `tests/${name.replaceAll("\\", "/")}`)
    .filter((name) => name.endsWith(".test.ts") && (only === null || name.includes(only)))
    .filter((name) => !OF_LAYERS.test(name));
  const isSpared = (file: string) =>
    LEFT_TO_VERIFY.includes(file) || SAMPLES.test(readFileSync(join(ROOT, file), "utf8"));
  const chance = new Prng(seed, "files");
  return {
    spared: chance.shuffle(all.filter(isSpared)),
    byProcesses: chance.shuffle(all.filter((file) => BY_PROCESSES.test(file))),
  };
}

async function runAll(
  task: Task,
  how: string,
  files: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<void> {
  let at = 0;
  while (at < files.length) {
    if (!task.goesOn) return task.count(`no time to run ${how}`, files.length - at);
    const most = Math.max(LEAST_FILES, Math.round((task.leftMs / 60_000) * FILES_PER_MINUTE));
    await runFiles(task, files.slice(at, at + most), env);
    at += most;
  }
}

async function runFiles(task: Task, files: readonly string[], more: NodeJS.ProcessEnv): Promise<void> {
  const report = join(task.scratch, "report.json");
  rmSync(report, { force: true });
  const replay = (file: string) => `npm run verify -- --layer "whole tests" --case ${file}`;
  const told = await vitest(task, files, report, more);
  const { numPassedTests = 0, testResults = [] } = readReport(report);
  task.tried += files.length;
  task.count("tests passed", numPassedTests);
  for (const { name, assertionResults, message } of testResults) {
    const file = relative(ROOT, name);
    const failed = assertionResults
      .filter(({ status }) => status === "failed")
      .map(({ fullName, failureMessages = [] }) => [fullName, ...failureMessages].join("\n  "));
    if (failed.length === 0 && message !== "") failed.push(message);
    for (const what of failed) task.broke(`${file}: ${what}`, replay(file));
  }
  for (const file of files)
    if (!testResults.some(({ name }) => relative(ROOT, name) === file))
      task.broke(`${file}: did not run\n${told}`, replay(file));
}

/** Vitest ends with a failure where a test failed; which one is in the report. */
function vitest(
  task: Task,
  files: readonly string[],
  report: string,
  more: NodeJS.ProcessEnv,
): Promise<string> {
  const seed = String(task.seed % 1_000_000);
  // With a place for its files already, Vitest would take itself for one of its own workers, and clear nothing of the environment.
  const { TEST_MEMORY: _, ...inherited } = process.env;
  const env = { ...inherited, ...more, TEST_WHOLE: "1", TEST_SAMPLE_SEED: seed, NODE_EXTRA_CA_CERTS: "" };
  const args = [
    "node_modules/vitest/vitest.mjs",
    "run",
    ...files,
    "--reporter=json",
    `--outputFile=${report}`,
  ];
  const setting = { cwd: ROOT, env, timeout: MOST_MS, maxBuffer: 64 * 2 ** 20 };
  return new Promise((resolve) => {
    execFile(process.execPath, args, setting, (_, stdout, stderr) => resolve(`${stdout}${stderr}`));
  });
}

interface Report {
  readonly numPassedTests?: number;
  readonly testResults?: readonly {
    readonly name: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages?: readonly string[];
    }[];
  }[];
}

function readReport(file: string): Report {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Report;
  } catch {
    return {};
  }
}
