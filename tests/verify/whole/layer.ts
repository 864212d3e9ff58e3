import { execFile } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Prng } from "../../../testing/simulator/prng";
import { ROOT } from "../bundle";
import type { Layer, Task } from "../layer";
import LEFT_TO_VERIFY from "../left-to-verify.json";

/** How a file of tests shows that `npm test` gives it less than all: it tries a sample, by itself or by a helper. */
const SAMPLES = /from "\.[./\w-]*\/(?:sample|property)"/;
/** Their commands are processes here; in `npm test` many of them are not. */
const BY_PROCESSES = /^tests\/(?:cli|scenarios|ledger)\//;
/** Layers bring more of the same. */
const OF_LAYERS = /^tests\/verify\/(?!models)/;
/** So long at most for one file, on a busy machine. */
const MOST_MS = 15 * 60_000;

/**
 * The plain tests without what `npm test` spares: all of what it tries a sample of, the files that it leaves out, and every
 * command by a process of its own.
 */
export const wholeTests: Layer = {
  name: "whole tests",
  unit: "test files",
  inTest: 0,
  inVerify: Number.MAX_SAFE_INTEGER,
  share: 0.2,
  mustMove: ["tests passed"],
  async prove(task) {
    for (const file of filesToRun(task)) {
      if (!task.goesOn) return;
      await runFile(task, file);
    }
  },
};

/** First what no other run tries; each part in another order each time, for a short run has no time for all. */
function filesToRun({ seed, only }: Task): string[] {
  const all = readdirSync(join(ROOT, "tests"), { recursive: true, encoding: "utf8" })
    .map((name) => `tests/${name.replaceAll("\\", "/")}`)
    .filter((name) => name.endsWith(".test.ts") && (only === null || name.includes(only)));
  const isFirst = (file: string) =>
    (LEFT_TO_VERIFY.includes(file) && !OF_LAYERS.test(file)) ||
    (!OF_LAYERS.test(file) && SAMPLES.test(readFileSync(join(ROOT, file), "utf8")));
  const chance = new Prng(seed, "files");
  const first = chance.shuffle(all.filter(isFirst));
  return [...first, ...chance.shuffle(all.filter((file) => !isFirst(file) && BY_PROCESSES.test(file)))];
}

async function runFile(task: Task, file: string): Promise<void> {
  const report = join(task.scratch, "report.json");
  rmSync(report, { force: true });
  const replay = `npm run verify -- --layer "whole tests" --case ${file}`;
  const told = await vitest(task, file, report);
  const { numPassedTests = 0, testResults = [] } = readReport(report);
  task.tried++;
  task.count("tests passed", numPassedTests);
  const failed = testResults.flatMap(({ assertionResults, message }) => {
    const named = assertionResults.filter(({ status }) => status === "failed");
    return named.length > 0
      ? named.map(({ fullName, failureMessages = [] }) => [fullName, ...failureMessages].join("\n  "))
      : message === ""
        ? []
        : [message];
  });
  for (const name of failed) task.broke(`${file}: ${name}`, replay);
  if (failed.length === 0 && numPassedTests === 0) task.broke(`${file}: no test passed\n${told}`, replay);
}

/** Vitest ends with a failure where a test failed; which one is in the report. */
function vitest(task: Task, file: string, report: string): Promise<string> {
  const seed = String(task.seed % 1_000_000);
  // With a place for its files already, Vitest would take itself for one of its own workers, and clear nothing of the environment.
  const { TEST_MEMORY: _, ...inherited } = process.env;
  const env = { ...inherited, TEST_WHOLE: "1", TEST_SAMPLE_SEED: seed, NODE_EXTRA_CA_CERTS: "" };
  const args = ["node_modules/vitest/vitest.mjs", "run", file, "--reporter=json", `--outputFile=${report}`];
  const setting = { cwd: ROOT, env, timeout: MOST_MS, maxBuffer: 64 * 2 ** 20 };
  return new Promise((resolve) => {
    execFile(process.execPath, args, setting, (_, stdout, stderr) => resolve(`${stdout}${stderr}`));
  });
}

interface Report {
  readonly numPassedTests?: number;
  readonly testResults?: readonly {
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
