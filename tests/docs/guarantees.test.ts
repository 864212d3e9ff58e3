import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "../house/source";
import { mentionsIn, type NamedTest, problemWith, testsIn, titlesIn } from "./named-tests";

const GUARANTEES = readFileSync(join(ROOT, "docs/GUARANTEES.md"), "utf8");
interface Promised {
  readonly heading: string;
  readonly tests: readonly NamedTest[];
}

/** The numbered sections with the tests they name. */
function promisesIn(markdown: string): Promised[] {
  return markdown
    .split(/^## /m)
    .filter((section) => /^\d+\. /.test(section))
    .map((section) => ({
      heading: section.split("\n")[0]!,
      tests: testsIn(section),
    }));
}

describe("GUARANTEES", () => {
  const promises = promisesIn(GUARANTEES);
  /** Also those of what is promised besides the ten. */
  const named = testsIn(GUARANTEES);

  it("states all ten promises, in order", () => {
    expect(promises.map(({ heading }) => Number.parseInt(heading, 10))).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
    ]);
  });

  it("names at least one test for each", () => {
    expect(promises.filter(({ tests }) => tests.length === 0).map(({ heading }) => heading)).toEqual([]);
  });

  it("names only tests that exist", () => {
    expect(named.map(problemWith).filter((wrong) => wrong !== null)).toEqual([]);
  });

  it("has no line that only looks like the name of a test", () => {
    expect(mentionsIn(GUARANTEES)).toBe(named.length);
  });
});

describe("finding a title", () => {
  it.each([
    ['it("a", () => {})', "a"],
    ['test.each([1, 2])("b %i", () => {})', "b %i"],
    ['it.runIf(process.getuid?.() === 0)("c", () => {})', "c"],
    ['test("d", { timeout: 1 }, () => {})', "d"],
    ["describe(`e`, () => {})", "e"],
    ['it("say \\"f\\"", () => {})', 'say "f"'],
  ])("works for %s", (source, title) => {
    expect(titlesIn(source)).toContain(title);
  });

  it("sees what is missing", () => {
    expect(problemWith({ file: "tests/docs/guarantees.test.ts", title: "not there" })).toContain("no test");
    expect(problemWith({ file: "tests/docs/nowhere.test.ts", title: "x" })).toContain("does not exist");
    expect(titlesIn('// it is "nothing"\nconst title = "x";')).toEqual([]);
  });
});
