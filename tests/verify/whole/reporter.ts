import { appendFileSync } from "node:fs";
import { relative } from "node:path";
import type { Reporter, TestModule, Vitest } from "vitest/node";

/** A file of tests, as the layer reads it. */
export interface Report {
  readonly file: string;
  readonly passed: number;
  /** Tests that had no time; they are those of a file that was under way. */
  readonly left: number;
  readonly failures: readonly string[];
}

/** A line for each file as soon as it has ended, and an end to everything when the time is up: what is under way ends first. */
export default class WholeReporter implements Reporter {
  #root = "";
  #timer: NodeJS.Timeout | undefined;
  #isLate = false;

  onInit(vitest: Vitest): void {
    this.#root = vitest.config.root;
    const leftMs = Number(process.env["TEST_UNTIL_MS"]) - Date.now();
    // A longer time than a timer can have is no limit.
    if (leftMs >= 2 ** 31) return;
    this.#timer = setTimeout(() => {
      this.#isLate = true;
      void vitest.cancelCurrentRun("test-failure");
    }, leftMs);
  }

  onTestModuleEnd(module: TestModule): void {
    const tests = [...module.children.allTests()].map((test) => ({ name: test.fullName, ...test.result() }));
    const failures = tests
      .filter(({ state }) => state === "failed")
      .map(({ name, errors }) => told(name, errors ?? []));
    const ofFile = module.errors();
    if (ofFile.length > 0) failures.push(told("", ofFile));
    const report: Report = {
      file: relative(this.#root, module.moduleId),
      passed: tests.filter(({ state }) => state === "passed").length,
      left: this.#isLate ? tests.filter(({ state }) => state === "pending" || state === "skipped").length : 0,
      failures,
    };
    appendFileSync(process.env["TEST_REPORT"]!, `${JSON.stringify(report)}\n`);
  }

  onTestRunEnd(): void {
    clearTimeout(this.#timer);
  }
}

function told(
  name: string,
  errors: readonly { readonly message: string; readonly stack?: string }[],
): string {
  return [name, ...errors.map(({ message, stack }) => stack ?? message)]
    .filter((text) => text !== "")
    .join("\n  ");
}
