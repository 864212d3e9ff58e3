import { decodeIssue, encodeIssue, type Issue } from "../model";
import { isEqual } from "./values";

/** Much longer than the longest description can make it. */
export const MOST_CHARACTERS = 1 << 23;

/**
 * An issue that says everything that its text says. Elsewhere what is of no use is passed over; a merge writes the file
 * anew, and would throw it away.
 */
export function readWhole(text: string): { readonly issue: Issue } | { readonly why: string } {
  if (text.length > MOST_CHARACTERS) return { why: "it is too large" };
  const reading = decodeIssue(text);
  if ("broken" in reading) return { why: reading.broken };
  const told = JSON.parse(text) as Record<string, unknown>;
  const kept = JSON.parse(encodeIssue(reading.issue)) as Record<string, unknown>;
  const odd = Object.keys(told).find(
    (name) => !Object.hasOwn(kept, name) || !isEqual(told[name], kept[name]),
  );
  if (odd !== undefined) return { why: `its ${odd} is not understood` };
  const paths = reading.issue.documents.map(({ path }) => path);
  if (new Set(paths).size !== paths.length) return { why: "it names a document twice" };
  const lost = lostByParsing(text);
  return lost === null ? reading : { why: lost };
}

/** What a JSON parser drops without a word: names that are there twice, and digits. The text is known to be JSON. */
function lostByParsing(text: string): string | null {
  const open: (Set<string> | null)[] = [];
  for (let at = 0; at < text.length; ) {
    const char = text[at]!;
    let end = at + 1;
    if (char === "{") open.push(new Set());
    else if (char === "[") open.push(null);
    else if (char === "}" || char === "]") open.pop();
    else if (char === '"') {
      end = endOfString(text, at);
      const names = open.at(-1);
      if (names != null && isName(text, end)) {
        const name = JSON.parse(text.slice(at, end)) as string;
        if (names.has(name)) return "it has a field twice";
        names.add(name);
      }
    } else if (char === "-" || (char >= "0" && char <= "9")) {
      while (end < text.length && /[-+.\deE]/.test(text[end]!)) end++;
      if (isRounded(text.slice(at, end))) return "it has a number with too many digits";
    }
    at = end;
  }
  return null;
}

/** Whether a number would come out as another one. */
function isRounded(number: string): boolean {
  const digits = number
    .replace(/[eE].*$/, "")
    .replace(/\D/g, "")
    .replace(/^0+/, "");
  return !Number.isFinite(Number(number)) || (digits.length > 15 && String(Number(number)) !== number);
}

function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

function isName(text: string, end: number): boolean {
  let at = end;
  while (text[at] === " " || text[at] === "\n" || text[at] === "\t" || text[at] === "\r") at++;
  return text[at] === ":";
}
