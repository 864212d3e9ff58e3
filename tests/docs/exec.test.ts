import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { TOOL_CACHES } from "../../src/features/exec/caches";

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), "utf8");

interface Row {
  readonly tool: string;
  readonly variables: readonly string[];
  readonly isChecked: boolean;
}

/** The rows of the table of tools that are told by their environment. */
function rows(): Row[] {
  return [...section("## Tools that are told by their environment").matchAll(ROW)].map(
    ([, tool, how, checked]) => ({
      tool: tool!,
      variables: [...how!.matchAll(/`([A-Za-z_]{4,})`/g)]
        .map(([, name]) => name!)
        .filter((name) => !MENTIONED.includes(name)),
      isChecked: checked === "yes",
    }),
  );
}

const ROW = /^\| ([^|]+) \| ([^|]+) \| (yes|no: [^|]+) \|$/gm;
/** Told of, and left as they are. */
const MENTIONED = ["CARGO_HOME", "SCCACHE_SERVER_PORT"];

function section(heading: string): string {
  return read("docs/EXEC.md").split(heading)[1]!.split("\n## ")[0]!;
}

it("EXEC has every tool with its variables, and no other", () => {
  const expected = TOOL_CACHES.map(({ tool, places, options = {} }) => ({
    tool,
    variables: [...Object.keys(places), ...Object.keys(options)],
  }));
  expect(rows().map(({ tool, variables }) => ({ tool, variables }))).toEqual(expected);
});

it("EXEC says of a tool that it is checked only where a test runs it, and else why not", () => {
  const others = section("## Tools that are not");
  const listed = others.split("\n").filter((line) => /^\| (?!tool |---)/.test(line));
  const flagged = [...others.matchAll(ROW)].map(([, tool, , checked]) => ({
    tool: tool!,
    isChecked: checked === "yes",
  }));
  expect(flagged).toHaveLength(listed.length);
  const run = [...read("tests/cli/exec-tools.test.ts").matchAll(/\btool: "([^"]+)"/g)].map(
    ([, tool]) => tool!,
  );
  const checked = [...rows(), ...flagged].filter(({ isChecked }) => isChecked).map(({ tool }) => tool);
  expect(checked.sort()).toEqual([...new Set(run)].sort());
});
