import { describe, expect, it } from "vitest";
import { ROOT } from "./source";

interface Summary {
  passed: number;
  failed: number;
  failures: string[];
  skipped: string[];
  scenarios: Record<"passed" | "failed" | "skipped", string[]>;
}

// A script has no types of its own; this is what npm test relies on.
const {
  summarise,
  scenarioTable,
}: {
  summarise(report: unknown): Summary;
  scenarioTable(scenarios: Summary["scenarios"]): string;
} = await import(`${ROOT}/scripts/report.mjs`);

const test = (title: string, status: string, ...ancestorTitles: string[]) => ({
  title,
  status,
  ancestorTitles,
  fullName: [...ancestorTitles, title].join(" "),
});

const file = (name: string, ...assertionResults: ReturnType<typeof test>[]) => ({
  name,
  status:
    assertionResults.length > 0 && assertionResults.every(({ status }) => status !== "failed")
      ? "passed"
      : "failed",
  assertionResults,
});

describe("npm test's report", () => {
  it("counts and names what failed, a file that could not be loaded as one failure", () => {
    const report = {
      testResults: [file("a", test("x", "passed"), test("y", "failed", "suite")), file("b")],
    };
    const failures = ["b: could not run", "a: suite y"];
    expect(summarise(report)).toMatchObject({ passed: 1, failed: 2, failures, skipped: [] });
  });

  it("names every test that did not run", () => {
    const report = {
      testResults: [file("a", test("x", "skipped"), test("y", "todo", "suite"), test("z", "passed"))],
    };
    expect(summarise(report)).toMatchObject({ passed: 1, failed: 0, skipped: ["x", "suite y"] });
  });

  it("calls a scenario passed when all tests of its number passed, in the order of the numbers", () => {
    const report = {
      testResults: [
        file("a", test("S29a: many", "passed"), test("S29: some", "passed"), test("S3: one", "passed")),
        file(
          "b",
          test("S3: again", "failed"),
          test("detail", "passed", "S12: evict"),
          test("S7 is no title", "passed"),
        ),
        file("c", test("S4: none", "skipped")),
      ],
    };
    const { scenarios } = summarise(report);
    expect(scenarios).toEqual({ passed: ["12", "29", "29a"], failed: ["3"], skipped: ["4"] });
    expect(scenarioTable(scenarios)).toBe(
      ["scenarios    #  numbers", "passed       3  12 29 29a", "failed       1  3", "skipped      1  4"].join(
        "\n",
      ),
    );
    expect(scenarioTable({ passed: [], failed: [], skipped: [] })).toBe("");
  });
});
