import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "../house/source";

const GUARANTEES = readFileSync(join(ROOT, "docs/GUARANTEES.md"), "utf8");
const NAMED = /^- `(tests\/[^`]+\.test\.ts)`: "(.+)"$/gm;

interface Promised {
  readonly heading: string;
  readonly tests: readonly { readonly file: string; readonly title: string }[];
}

/** The numbered sections with the tests they name. */
function promisesIn(markdown: string): Promised[] {
  return markdown
    .split(/^## /m)
    .filter((section) => /^\d+\. /.test(section))
    .map((section) => ({
      heading: section.split("\n")[0]!,
      tests: [...section.matchAll(NAMED)].map(([, file, title]) => ({ file: file!, title: title! })),
    }));
}

/** Titles as they stand in a test file, of tests and suites, whatever comes between the name and its title. */
function titlesIn(source: string): string[] {
  const calls =
    /\b(?:it|test|describe)\b[\w.]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?\(\s*(["'`])((?:\\.|(?!\1).)*)\1/gs;
  return [...source.matchAll(calls)].map(([, , title]) => title!.replace(/\\(.)/g, "$1"));
}

function problemWith({ file, title }: Promised["tests"][number]): string | null {
  const path = join(ROOT, file);
  if (!existsSync(path)) return `${file} does not exist`;
  const isThere = titlesIn(readFileSync(path, "utf8")).includes(title);
  return isThere ? null : `${file} has no test "${title}"`;
}

describe("GUARANTEES", () => {
  const promises = promisesIn(GUARANTEES);

  it("states all ten promises, in order", () => {
    expect(promises.map(({ heading }) => Number.parseInt(heading, 10))).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
    ]);
  });

  it("names at least one test for each", () => {
    expect(promises.filter(({ tests }) => tests.length === 0).map(({ heading }) => heading)).toEqual([]);
  });

  it("names only tests that exist", () => {
    expect(promises.flatMap(({ tests }) => tests.map(problemWith)).filter((wrong) => wrong !== null)).toEqual(
      [],
    );
  });

  it("has no line that only looks like the name of a test", () => {
    const mentions = [...GUARANTEES.matchAll(/^- .*\btests\/.*$/gm)].length;
    expect(mentions).toBe(promises.flatMap(({ tests }) => tests).length);
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
