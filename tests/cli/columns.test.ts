import { expect, it } from "vitest";
import { columns } from "../../src/cli/terminal/render";

const terminal = { isTerminal: true, color: false, columns: 40 } as Parameters<typeof columns>[0];

it("a wide table is cut where it can be spared, and only in a terminal", () => {
  const rows = [["key", "v".repeat(60), "default"]];
  const head = ["KEY", "VALUE", "FROM"];
  const shown = columns(terminal, head, rows, 1).split("\n");
  expect(shown).toEqual([`KEY  VALUE${" ".repeat(23)}FROM`, `key  ${"v".repeat(25)}…  default`]);
  expect(columns(terminal, head, rows).split("\n")[1]).toHaveLength(40);
  expect(columns({ ...terminal, isTerminal: false }, head, rows, 1)).toContain("v".repeat(60));
});
