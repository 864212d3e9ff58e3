/**
 * npm test: everything that must hold before a change lands.
 * npm test -- <filter…>: only the tests, with Vitest's own filters and options.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { ensureBuilt } from "./build.mjs";
import { ensureDebianPackages } from "./debian-packages.mjs";
import { ensureInstalled } from "./install.mjs";
import { ROOT, runNode, say, seconds } from "./project.mjs";
import { scenarioTable, summarise, table } from "./report.mjs";

const MOST_MINUTES = Number(process.env.TEST_MINUTES ?? 20);
const LINT = ["ci", "--error-on-warnings", "--diagnostic-level=warn"];
// Biome and Vitest colour what they write to a file, too.
if (!process.stdout.isTTY && process.env.FORCE_COLOR === undefined) {
  process.env.NO_COLOR = "1";
  LINT.push("--colors=off");
}

/** What `npm run verify` has more time for is left to it, unless it is asked for by its name. */
const PROJECTS = ["unit", "e2e", "layers"].map((name) => `--project=${name}`);
const LEFT_TO_VERIFY = JSON.parse(readFileSync(join(ROOT, "tests/verify/left-to-verify.json"), "utf8"));

/** Some tests change owners or mount disks. Where that is possible, leaving one out would hide a gap. */
const CAN_RUN_ALL = process.platform === "linux" && process.getuid() === 0;

const filters = process.argv.slice(2);
const isAskedFor = filters.some(
  (filter) => LEFT_TO_VERIFY.includes(filter) || filter.startsWith("--project"),
);
const results = [];
const started = performance.now();

/** Runs one step, times it and goes on: one run shows everything that is wrong. */
async function step(name, act) {
  const stepStarted = performance.now();
  let failure = null;
  try {
    const status = await act();
    if (typeof status === "number" && status !== 0) failure = `exit ${status}`;
  } catch (error) {
    failure = error.message.split("\n")[0];
    say(`${name}: ${error.message}`);
  }
  results.push({ name, failure, time: seconds(stepStarted) });
  return failure === null;
}

async function runVitest() {
  const room = mkdtempSync(join(tmpdir(), "cotenant-report-"));
  process.once("exit", () => rmSync(room, { recursive: true, force: true }));
  const file = join(room, "report.json");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`];
  const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
  const status = await runGroup([vitest, "run", ...reporters, ...(isAskedFor ? [] : PROJECTS), ...filters]);
  return { status, summary: existsSync(file) ? summarise(JSON.parse(readFileSync(file, "utf8"))) : null };
}

/**
 * In a process group of its own, which ends as a whole: with us, or after a time no honest run takes. Vitest's own
 * timeouts cannot stop a test that never gives up its thread, and such a worker would outlive Vitest, too.
 */
function runGroup(args) {
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    stdio: ["ignore", "inherit", "inherit"],
    detached: true,
  });
  const end = () => {
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // It has ended already.
    }
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.once(signal, () => {
      end();
      process.exit(128 + constants.signals[signal]);
    });
  }
  return new Promise((resolve, reject) => {
    const watchdog = setTimeout(() => {
      end();
      reject(
        new Error(`stopped after ${MOST_MINUTES} minutes: a test that is not in the list above does not end`),
      );
    }, MOST_MINUTES * 60_000);
    child.on("error", reject);
    child.on("close", (status) => {
      clearTimeout(watchdog);
      resolve(status ?? 1);
    });
  });
}

function print(text) {
  process.stdout.write(`${text}\n`);
}

function printResults(summary) {
  const rows = results.map(({ name, failure, time }) => [name, time.padStart(8), failure ?? "ok"]);
  const total = ["together", seconds(started).padStart(8), ""];
  print(`\n${table([["step", "    time", "result"], ...rows, total])}`);
  const scenarios = summary === null ? "" : scenarioTable(summary.scenarios);
  if (scenarios !== "") print(`\n${scenarios}`);
  print(`\n${summary?.passed ?? 0} passed, ${summary?.failed ?? 0} failed`);
  // The very last lines: whoever sees only the end of a log still learns what failed.
  for (const { name, failure } of results) if (failure !== null) print(`FAILED ${name}: ${failure}`);
  for (const failure of summary?.failures ?? []) print(`FAILED ${failure.replace(`${ROOT}/`, "")}`);
}

async function main() {
  let summary = null;
  if (await step("install", ensureInstalled)) {
    await step("build", () => ensureBuilt().then(() => 0));
    await step("packages", () => void ensureDebianPackages(isAskedFor ? ["test", "verify"] : ["test"]));
    if (filters.length === 0) {
      await step("format, lint", () => runNode("node_modules/@biomejs/biome/bin/biome", LINT));
      await step("types", () =>
        runNode("node_modules/typescript/bin/tsc", ["--noEmit", "-p", "tsconfig.json"]),
      );
      await step("unused", () => runNode("node_modules/knip/bin/knip.js", ["--no-progress"]));
      await step("docs", () => runNode("scripts/docs.mjs", ["--check"]));
    }
    await step("tests", async () => {
      const ran = await runVitest();
      summary = ran.summary;
      // With a filter Vitest reports what it left out as skipped, too.
      const skipped = (filters.length === 0 && summary?.skipped) || [];
      for (const name of skipped) say(`skipped: ${name}`);
      if (summary?.passed === 0 && summary.failed === 0) throw new Error("no test ran");
      if (skipped.length > 0 && CAN_RUN_ALL)
        throw new Error(`${skipped.length} left out; here every test can run`);
      return ran.status;
    });
  }
  printResults(summary);
  process.exitCode = results.some(({ failure }) => failure !== null) ? 1 : 0;
}

await main();
