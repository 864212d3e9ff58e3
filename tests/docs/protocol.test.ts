import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { filesBelow, ROOT, type SourceFile } from "../house/source";
import { TEST_PLANTS } from "../verify/planted/test-plants";
import { PLANTS } from "../verify/plants";
import { mentionsIn, problemWith, testsIn } from "./named-tests";

const PROTOCOL = readFileSync(join(ROOT, "docs/PROTOCOL.md"), "utf8");
const STORIES = readFileSync(join(ROOT, "tests/verify/simulation/directed.ts"), "utf8");
const citing = [
  ...["src", "tests", "docs"].flatMap(filesBelow),
  ...["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(
    (path): SourceFile => ({ path, text: readFileSync(join(ROOT, path), "utf8") }),
  ),
];

interface Rule {
  readonly number: string;
  readonly text: string;
}

function rulesIn(markdown: string): Rule[] {
  return markdown
    .split(/^(?=##)/m)
    .flatMap((text) =>
      [...text.matchAll(/^### (\d+[a-z]?)\. /g)].map(([, number]) => ({ number: number!, text })),
    );
}

const NUMBERS = "\\d+[a-z]?(?:(?:, | and | to |[-–])\\d+[a-z]?)*";

/** "3", "6, 9", "10-16" and "3 and 18–21", as single numbers. */
function spread(numbers: string): string[] {
  return numbers.split(/, | and /).flatMap((part) => {
    const [from = "", to] = part.split(/[-–]| to /);
    if (to === undefined) return [from];
    const [first, last] = [Number.parseInt(from, 10), Number.parseInt(to, 10)];
    return Array.from({ length: last - first + 1 }, (_, at) => String(first + at));
  });
}

function citedIn(text: string, by: string): string[] {
  return [...text.matchAll(new RegExp(`\\b${by} (${NUMBERS})\\b`, "g"))].flatMap(([, numbers]) =>
    spread(numbers!),
  );
}

/** Names that the page calls a story, a plant or a model. */
function named(kind: "story" | "plant" | "model"): string[] {
  return [...PROTOCOL.matchAll(new RegExp(`^- ${kind} ["\`](.+)["\`]$`, "gm"))].map(([, name]) => name!);
}

const rules = rulesIn(PROTOCOL);
const numbers = new Set(rules.map(({ number }) => number));
const unknown = (cited: readonly string[]) => cited.filter((number) => !numbers.has(number));

describe("PROTOCOL", () => {
  it("has its rules in order, each once, and lists them at its beginning", () => {
    const inOrder = Array.from({ length: rules.length - 2 }, (_, at) => String(at + 1));
    inOrder.splice(26, 0, "26a", "26b");
    expect(rules.map(({ number }) => number)).toEqual(inOrder);
    expect([...PROTOCOL.matchAll(/^- \[(\d+[a-z]?)\]\(#/gm)].map(([, number]) => number)).toEqual(inOrder);
  });

  it("has every rule that is cited anywhere", () => {
    const wrong = citing.flatMap(({ path, text }) =>
      unknown(citedIn(text, "PROTOCOL")).map((number) => `${path}: ${number}`),
    );
    expect(wrong).toEqual([]);
    expect(citing.flatMap(({ text }) => citedIn(text, "PROTOCOL")).length).toBeGreaterThan(50);
    expect(unknown(citedIn(PROTOCOL, "rules?"))).toEqual([]);
    const told = [...STORIES.matchAll(/^\s+rules: \[(.*)\],$/gm)].flatMap(([, list]) => list!.split(", "));
    expect(told.length).toBeGreaterThan(10);
    expect(unknown(told)).toEqual([]);
  });

  it("says of each rule why, where, and what holds it", () => {
    const parts = [/^Why\b/m, /^Where: `src\//m, /^Held by:(?:\n\n- `tests\/| no test of its own)/m];
    // Not built.
    const built = rules.filter(({ number }) => number !== "29");
    expect(
      built.filter(({ text }) => !parts.every((part) => part.test(text))).map(({ number }) => number),
    ).toEqual([]);
  });

  it("names only files that exist, and what is in them", () => {
    const paths = [...PROTOCOL.matchAll(/`((?:src|tests|docs)\/[^`\s]+)`/g)].map(([, path]) => path!);
    expect(paths.length).toBeGreaterThan(100);
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    const parts = [...PROTOCOL.matchAll(/`(src\/[\w./-]+\.ts)`\s\(((?:`[^`]+`(?:,\s)?)+)\)/g)].flatMap(
      ([, path, list]) => [...list!.matchAll(/`([^`]+)`/g)].map(([, part]) => ({ path: path!, part: part! })),
    );
    expect(parts.length).toBeGreaterThan(10);
    const missing = parts.filter(({ path, part }) => !readFileSync(join(ROOT, path), "utf8").includes(part));
    expect(missing).toEqual([]);
  });

  it("names only tests that exist", () => {
    const tests = testsIn(PROTOCOL);
    expect(tests.map(problemWith).filter((wrong) => wrong !== null)).toEqual([]);
    expect(mentionsIn(PROTOCOL)).toBe(tests.length);
  });

  it("names only stories, plants and models that exist", () => {
    const plants = new Set([...PLANTS, ...TEST_PLANTS].map(({ name }) => name));
    expect(named("plant").filter((name) => !plants.has(name))).toEqual([]);
    expect(named("story").filter((name) => !STORIES.includes(`name: "${name}"`))).toEqual([]);
    const isModel = (name: string) => existsSync(join(ROOT, `tests/verify/models/${name}.pml`));
    expect(named("model").filter((name) => !isModel(name))).toEqual([]);
    for (const kind of ["plant", "story", "model"] as const)
      expect(named(kind).length).toBe([...PROTOCOL.matchAll(new RegExp(`^- ${kind}\\b`, "gm"))].length);
  });
});

it("nothing cites a specification that is not in the repository", () => {
  const outside = new RegExp(`\\b${["SP", "EC"].join("")}\\b`);
  expect(citing.filter(({ text }) => outside.test(text)).map(({ path }) => path)).toEqual([]);
});

describe("a citation", () => {
  const cite = (numbers: string) => `see ${["PROTOCOL", numbers].join(" ")}: so`;

  it.each([
    ["7", ["7"]],
    ["26a", ["26a"]],
    ["6, 9", ["6", "9"]],
    ["3 and 18–21", ["3", "18", "19", "20", "21"]],
    ["10-12", ["10", "11", "12"]],
  ])("of %s is found", (numbers, expected) => {
    expect(citedIn(cite(numbers), "PROTOCOL")).toEqual(expected);
  });

  it("of a rule that is not there is seen", () => {
    expect(unknown(citedIn(cite("3, 400"), "PROTOCOL"))).toEqual(["400"]);
  });
});
