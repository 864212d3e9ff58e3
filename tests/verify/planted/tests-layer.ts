import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Prng } from "../../../testing/simulator/prng";
import { ROOT } from "../bundle";
import type { Layer } from "../layer";
import { TEST_PLANTS, type TestPlant } from "./test-plants";

/** What a copy of the project leaves out: it is large, or it is made anew. */
const LEFT_OUT = [".git", "node_modules", "dist", "coverage"];
const MOST_MS = 240_000;

/** The tests against themselves: with a bug put in, the test that was written against it fails. */
export const plantedTests: Layer = {
  name: "planted tests",
  unit: "bugs",
  inTest: 0,
  inVerify: TEST_PLANTS.length,
  share: 0,
  mustMove: ["noticed"],
  async prove(task) {
    const copy = new ProjectCopy(join(task.scratch, "project"));
    const wanted = TEST_PLANTS.filter(({ name }) => task.only === null || name.includes(task.only));
    // In another order each time: whatever a short run has no time for is tried in another one.
    for (const plant of new Prng(task.seed, "plants").shuffle(wanted)) {
      if (!task.goesOn) break;
      task.tried++;
      const outcome = await copy.tryPlant(plant);
      if (outcome === "noticed") task.count("noticed");
      else
        task.broke(
          `${plant.test} does not notice "${plant.name}": ${outcome}`,
          `npm run verify -- --layer "planted tests" --case ${JSON.stringify(plant.name)}`,
        );
    }
  },
};

/** A copy of the project to put bugs into, one at a time. */
export class ProjectCopy {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
    mkdirSync(root, { recursive: true });
    const isKept = (path: string) => !LEFT_OUT.some((name) => path === join(ROOT, name));
    cpSync(ROOT, root, { recursive: true, filter: isKept });
    symlinkSync(join(ROOT, "node_modules"), join(root, "node_modules"));
  }

  /** "noticed", or what happened instead. */
  async tryPlant(plant: TestPlant): Promise<string> {
    const path = join(this.#root, plant.file);
    const text = readFileSync(path, "utf8");
    if (text.split(plant.from).length !== 2) return `its place is not in ${plant.file} exactly once`;
    writeFileSync(
      path,
      text.replace(plant.from, () => plant.to),
    );
    try {
      return (await this.#build()) ?? (await this.#runTest(plant));
    } finally {
      writeFileSync(path, text);
    }
  }

  /** Why it cannot be built, or null. The tests that start the program take it from there. */
  async #build(): Promise<string | null> {
    try {
      await this.#node(["scripts/build.mjs"]);
      return null;
    } catch (error) {
      return `with it, nothing can be built: ${(error as Error).message}`;
    }
  }

  async #runTest({ test, named }: TestPlant): Promise<string> {
    const report = join(this.#root, "report.json");
    rmSync(report, { force: true });
    const vitest = ["node_modules/vitest/vitest.mjs", "run", test, "--testNamePattern", escaped(named)];
    // It fails, as it should; what failed is in the report.
    await this.#node([...vitest, "--reporter=json", `--outputFile=${report}`]).catch(() => undefined);
    if (!existsSync(report)) return "the test made no report";
    const { testResults } = JSON.parse(readFileSync(report, "utf8")) as VitestReport;
    const ran = testResults
      .flatMap(({ assertionResults }) => assertionResults)
      .filter(({ status, fullName }) => status !== "skipped" && fullName.includes(named));
    if (ran.length === 0) return `no test named "${named}" ran`;
    return ran.some(({ status }) => status === "failed") ? "noticed" : "the test passes";
  }

  #node(args: readonly string[]) {
    const env = { ...process.env, TEST_WHOLE: "1", NODE_EXTRA_CA_CERTS: "" };
    return promisify(execFile)(process.execPath, args, {
      cwd: this.#root,
      env,
      timeout: MOST_MS,
      maxBuffer: 64 * 2 ** 20,
    });
  }
}

interface VitestReport {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

function escaped(text: string): string {
  return text.replace(/[$()*+.?[\\\]^{|}]/g, "\\$&");
}
