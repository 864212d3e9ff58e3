import { describe, expect, it } from "vitest";
import { type Span, threeWay } from "../../src/features/issues/merge/sequence";
import { mergeText } from "../../src/features/issues/merge/text";

const BASE = "One.\n\nTwo.\n\nThree.";
const TODO = "Left to do:\n\n- [ ] a\n- [ ] b\n- [ ] c";

/** The one result, which must not depend on the order. */
function merged(base: string, left: string, right: string): string {
  const { left: one, right: other } = mergeText(base, left, right);
  expect(one).toBe(other);
  expect(mergeText(base, right, left).left).toBe(one);
  return one;
}

describe("text that two sides changed", () => {
  it.each([
    ["different paragraphs", BASE, "1.\n\nTwo.\n\nThree.", "One.\n\nTwo.\n\n3.", "1.\n\nTwo.\n\n3."],
    ["paragraphs side by side", BASE, "1.\n\nTwo.\n\nThree.", "One.\n\n2.\n\nThree.", "1.\n\n2.\n\nThree."],
    [
      "one added at the end, the last one changed",
      BASE,
      `${BASE}\n\nFour.`,
      "One.\n\nTwo.\n\n3.",
      "One.\n\nTwo.\n\n3.\n\nFour.",
    ],
    [
      "one added at the end, with a line end",
      `${BASE}\n`,
      `${BASE}\n\nFour.\n`,
      "1.\n\nTwo.\n\nThree.\n",
      "1.\n\nTwo.\n\nThree.\n\nFour.\n",
    ],
    [
      "one added in front, the first one changed",
      BASE,
      `Zero.\n\n${BASE}`,
      "1.\n\nTwo.\n\nThree.",
      "Zero.\n\n1.\n\nTwo.\n\nThree.",
    ],
    ["both added at the end", BASE, `${BASE}\n\nFour.`, `${BASE}\n\nFive.`, `${BASE}\n\nFive.\n\nFour.`],
    ["both added the same", BASE, `${BASE}\n\nFour.`, `0.\n\n${BASE}\n\nFour.`, `0.\n\n${BASE}\n\nFour.`],
    ["neighbours removed", BASE, "One.\n\nThree.", "One.\n\nTwo.", "One."],
    ["everything removed, and something added", BASE, "", `${BASE}\n\nFour.`, "Four."],
    [
      "lines of one list, side by side",
      TODO,
      TODO.replace("[ ] a", "[x] a"),
      TODO.replace("[ ] b", "[x] b"),
      TODO.replace("[ ] a", "[x] a").replace("[ ] b", "[x] b"),
    ],
    [
      "a line ticked, one added below it",
      TODO,
      TODO.replace("[ ] c", "[x] c"),
      `${TODO}\n- [ ] d`,
      `${TODO.replace("[ ] c", "[x] c")}\n- [ ] d`,
    ],
    [
      "white space only, beside a change",
      BASE,
      "One.\n\n\nTwo.\n\nThree.",
      "One.\n\nTwo.\n\n3.",
      "One.\n\n\nTwo.\n\n3.",
    ],
    ["Windows' line ends", "A\r\n\r\nB", "A2\r\n\r\nB", "A\r\n\r\nB2", "A2\r\n\r\nB2"],
    ["indented code", "  if\n    x\n\ny", "  if\n    x\n\nz", "  if\n    x2\n\ny", "  if\n    x2\n\nz"],
  ])("merges %s", (_, base, left, right, wanted) => {
    expect(merged(base, left, right)).toBe(wanted);
  });

  it.each([
    [
      "the same line",
      BASE,
      "One.\n\n2.\n\nThree.",
      "One.\n\nII.\n\nThree.",
      "One.\n\n2.\n\nThree.",
      "One.\n\nII.\n\nThree.",
    ],
    [
      "a paragraph that the other removed",
      BASE,
      "One.\n\n2.\n\nThree.",
      "One.\n\nThree.",
      "One.\n\n2.\n\nThree.",
      "One.\n\nThree.",
    ],
    ["what was empty", "", "Mine.", "Yours.", "Mine.", "Yours."],
    ["what was blank", " \n", "Mine.\n\nSame.", "Yours.\n\nSame.", "Mine.\n\nSame.", "Yours.\n\nSame."],
    [
      "one place, beside others that merge",
      BASE,
      "1.\n\n2.\n\nThree.",
      "One.\n\nII.\n\n3.",
      "1.\n\n2.\n\n3.",
      "1.\n\nII.\n\n3.",
    ],
    [
      "lines added at the same place of a list",
      TODO,
      `${TODO}\n- [ ] d`,
      `${TODO}\n- [ ] e`,
      `${TODO}\n- [ ] d`,
      `${TODO}\n- [ ] e`,
    ],
    [
      "almost the same paragraphs added",
      BASE,
      `${BASE}\n\nX.\n\nY.`,
      `${BASE}\n\nX.\n\nZ.`,
      `${BASE}\n\nX.\n\nY.`,
      `${BASE}\n\nX.\n\nZ.`,
    ],
  ])("keeps both of %s", (_, base, left, right, mine, yours) => {
    expect(mergeText(base, left, right)).toEqual({ left: mine, right: yours });
    expect(mergeText(base, right, left)).toEqual({ left: yours, right: mine });
  });

  it("looks at a megabyte of nothing in common in a moment, and keeps both", () => {
    const lines = (letter: string) =>
      Array.from({ length: 100_000 }, (_, at) => `${letter}${at}`).join("\n\n");
    const [base, left, right] = [lines("a"), lines("b"), lines("c")];
    expect(mergeText(base, left, right)).toEqual({ left, right });
    // Looking at each with each would take hours: the test's own time limit is what would notice.
  });

  it.each([
    ["spaces after a line end", `\n${" ".repeat(200_000)}`.repeat(4)],
    ["line ends", "\n".repeat(1_000_000)],
  ])("is not slowed down by many %s", (_, blank) => {
    expect(mergeText(`a${blank}b`, `a${blank}c`, `d${blank}b`)).toMatchObject({ left: `d${blank}c` });
  });
});

describe("a three-way look at sequences", () => {
  it("covers each of the three once, in order, whatever they are", () => {
    const words = (seed: number) =>
      Array.from({ length: seed % 7 }, (_, at) => "abc"[Math.floor(seed / 7 ** at) % 3]!);
    for (let seed = 0; seed < 4_000; seed++) {
      const three = [words(seed * 31 + 5), words(seed * 17 + 3), words(seed * 13 + 6)] as const;
      const parts = threeWay(...three);
      const of = (kind: "left" | "right") =>
        parts.flatMap((part) => {
          const span = (part as { readonly left?: Span; readonly right?: Span })[kind];
          return span === undefined ? [] : three[kind === "left" ? 1 : 2].slice(...span);
        });
      const removed = (kind: "left" | "right") => parts.some((part) => part.kind === kind);
      if (!removed("right")) expect(of("left"), `${seed}`).toEqual(three[1]);
      if (!removed("left")) expect(of("right"), `${seed}`).toEqual(three[2]);
      for (const part of parts)
        if (part.kind === "same") {
          expect(three[1].slice(...part.left), `${seed}`).toEqual(three[0].slice(...part.base));
          expect(three[2].slice(...part.right), `${seed}`).toEqual(three[0].slice(...part.base));
        }
    }
  });
});
