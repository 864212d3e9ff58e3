import { paint, untabbed } from "./render";
import type { Terminal } from "./terminal";

const MOST_LINES = 2_000;
const LONGEST_LINE = 2_000;

/**
 * Somebody else's text for a terminal: labelled, of limited length, and without anything that could move the cursor or
 * turn the direction of writing. Its lines are set off, so that none of them can pass for a line of ours.
 */
export function shownLines(terminal: Terminal, label: string, text: string, isCut: boolean): string[] {
  const lines = text.replace(/\r\n?/g, "\n").replace(/\n$/, "").split("\n");
  const left = lines.length - MOST_LINES;
  return [
    paint(terminal, "dim", `  ${label}${isCut ? " (cut)" : ""}:`),
    ...(left > 0 ? [`  | … ${left} lines before`] : []),
    ...lines.slice(-MOST_LINES).map((line) => `  | ${untabbed(line, LONGEST_LINE)}`),
  ];
}
