import { encodeIssue, type Issue } from "../model";
import { isEqual, type Pair } from "./values";

export interface Marks {
  readonly left: string;
  readonly right: string;
  /** How many characters a mark has; Git asks for longer ones when it merges common ancestors. */
  readonly size: number;
}

/**
 * The file with both values of what contradicts, each a whole field between Git's usual marks. Whichever of the two is left
 * standing, in every place, it is JSON again: a field ends in a comma, and the last one, the stamp, never contradicts.
 */
export function conflictText({ left, right }: Pair<Issue>, marks: Marks): string {
  const [mine, yours] = [left, right].map(
    (issue) => JSON.parse(encodeIssue(issue)) as Record<string, unknown>,
  ) as [Record<string, unknown>, Record<string, unknown>];
  const names = [...new Set([...Object.keys(mine), ...Object.keys(yours)])].filter(
    (name) => name !== "stamp",
  );
  const lines = names.flatMap((name) => {
    const [one, other] = [fieldLines(mine, name), fieldLines(yours, name)];
    return isEqual(one, other) ? one : markedLines(one, other, marks);
  });
  const stamp = fieldLines(mine, "stamp").join("\n").replace(/,$/, "");
  return `{\n${lines.map((line) => `${line}\n`).join("")}${stamp}\n}\n`;
}

/** As JSON.stringify would write it inside the whole; nothing where the field is not there. */
function fieldLines(fields: Readonly<Record<string, unknown>>, name: string): string[] {
  if (!Object.hasOwn(fields, name)) return [];
  const value = JSON.stringify(fields[name], null, 2).split("\n");
  const [first, ...rest] = [`${JSON.stringify(name)}: ${value[0]}`, ...value.slice(1)];
  const lines = [first, ...rest].map((line) => `  ${line}`);
  return [...lines.slice(0, -1), `${lines.at(-1)},`];
}

/** Lines that both begin or end with need no marks. */
function markedLines(left: readonly string[], right: readonly string[], { size, ...marks }: Marks): string[] {
  let start = 0;
  const most = Math.min(left.length, right.length);
  while (start < most && left[start] === right[start]) start++;
  let tail = 0;
  while (tail < most - start && left.at(-1 - tail) === right.at(-1 - tail)) tail++;
  const inner = (lines: readonly string[]) => lines.slice(start, lines.length - tail);
  return [
    ...left.slice(0, start),
    `${"<".repeat(size)} ${marks.left}`,
    ...inner(left),
    "=".repeat(size),
    ...inner(right),
    `${">".repeat(size)} ${marks.right}`,
    ...left.slice(left.length - tail),
  ];
}

/** The two texts that such a file stands for, or null where it has no marks. */
export function sidesOf(text: string): Pair<string> | null {
  const sides: { left: string[]; right: string[] } = { left: [], right: [] };
  let reading: "both" | "left" | "base" | "right" = "both";
  let hasMarks = false;
  for (const line of text.split("\n")) {
    if (/^<{7,} /.test(line)) {
      reading = "left";
      hasMarks = true;
    } else if (/^\|{7,}(?: |$)/.test(line)) reading = "base";
    else if (/^={7,}$/.test(line)) reading = "right";
    else if (/^>{7,} /.test(line)) reading = "both";
    else {
      if (reading === "both" || reading === "left") sides.left.push(line);
      if (reading === "both" || reading === "right") sides.right.push(line);
    }
  }
  return hasMarks ? { left: sides.left.join("\n"), right: sides.right.join("\n") } : null;
}
