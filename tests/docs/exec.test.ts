import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { TOOL_CACHES } from "../../src/exec/caches";

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), "utf8");

interface Row {
  readonly tool: string;
  readonly variables: readonly string[];
  readonly isChecked: boolean;
}

/** The rows of the table of tools that are told by their environment. */
function rows(): Row[] {
  const [, table = ""] = read("docs/EXEC.md").split("## Tools that are told by their environment");
  return [...table.split("\n## ")[0]!.matchAll(/^\| ([^|]+) \| ([^|]+) \| (yes|–) \|$/gm)].map(
    ([, tool, how, checked]) => ({
      tool: tool!,
      variables: [...how!.matchAll(/`([A-Za-z_]{4,})`/g)]
        .map(([, name]) => name!)
        .filter((name) => name !== "CARGO_HOME"),
      isChecked: checked === "yes",
    }),
  );
}

it("EXEC has every tool with its variables, and no other", () => {
  const expected = TOOL_CACHES.map(({ tool, places, options = {} }) => ({
    tool,
    variables: [...Object.keys(places), ...Object.keys(options)],
  }));
  expect(rows().map(({ tool, variables }) => ({ tool, variables }))).toEqual(expected);
});

it("EXEC says of a tool that it is checked only where a test runs it", () => {
  const test = read("tests/cli/exec.test.ts");
  const [, byWord = ""] = /it\("([^"]+), by their own word"/.exec(test) ?? [];
  const run = [...test.matchAll(/\btool: "([^"]+)"/g)].map(([, tool]) => tool!);
  const checked = rows()
    .filter(({ isChecked }) => isChecked)
    .map(({ tool }) => tool);
  expect(checked.sort()).toEqual([...new Set([...run, ...byWord.split(" and ")])].sort());
});
