import { expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/commands";
import { OPERATIONS } from "../../src/operations";

/** Of a terminal, of a process of its own, or called by Git and by shells only. */
const NONE = /^(?:demo|completion|complete|version|merge-issue|daemon (?:run|install)|hook .+)$/;

it("every command has its operation in the library, by its own words", async () => {
  const missing: string[] = [];
  for (const name of Object.keys(COMMANDS).filter((command) => !NONE.test(command))) {
    const [word = "", verb] = name
      .split(" ")
      .map((part) => part.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase()));
    const found = await OPERATIONS[word as keyof typeof OPERATIONS]?.();
    const operation = verb === undefined ? found : (found as Record<string, unknown> | undefined)?.[verb];
    if (typeof operation !== "function") missing.push(name);
  }
  expect(missing).toEqual([]);
});

it("and none of them is another word for nothing", async () => {
  const words = new Set(Object.keys(COMMANDS).map((name) => name.split(" ")[0]));
  expect(Object.keys(OPERATIONS).filter((word) => !words.has(word))).toEqual([]);
});
