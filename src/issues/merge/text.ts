import { type Span, threeWay } from "./sequence";
import { agreed, inEitherOrder, mergeValue, type Pair } from "./values";

/** A paragraph, and the white space up to the next one: who adds one at the end has not changed the one before. */
interface Paragraph {
  readonly text: string;
  readonly gap: string;
}

interface Prose {
  /** Blank lines before the first paragraph. */
  readonly lead: string;
  readonly paragraphs: readonly Paragraph[];
  /** White space after the last one. */
  readonly tail: string;
}

/**
 * Free text, by paragraphs, and where both sides changed the same ones, by their lines. Paragraphs that both added at the
 * same place are both kept. What contradicts is the whole text twice, with each side's lines in the places in question.
 */
export function mergeText(base: string, left: string, right: string): Pair<string> {
  const plain = mergeValue(base, left, right);
  // A text that was not there before has no paragraphs of its own yet.
  if (plain.left === plain.right || base.trim() === "") return plain;
  const [from, mine, yours] = [proseOf(base), proseOf(left), proseOf(right)];
  const sides: { left: Paragraph[]; right: Paragraph[] } = { left: [], right: [] };
  const both = (paragraphs: readonly Paragraph[]) => {
    sides.left.push(...paragraphs);
    sides.right.push(...paragraphs);
  };
  for (const part of threeWay(...([from, mine, yours].map(textsOf) as [string[], string[], string[]]))) {
    if (part.kind === "left") both(mine.paragraphs.slice(...part.left));
    else if (part.kind === "right") both(yours.paragraphs.slice(...part.right));
    else {
      const span = ({ paragraphs }: Prose, [start, end]: Span) => paragraphs.slice(start, end);
      const three = [span(from, part.base), span(mine, part.left), span(yours, part.right)] as const;
      if (part.kind === "same") both(withGaps(...three));
      else {
        const merged = mergeParagraphs(...three);
        sides.left.push(...merged.left);
        sides.right.push(...merged.right);
      }
    }
  }
  const blank = from.paragraphs.length > 1 ? from.paragraphs[0]!.gap : "\n\n";
  const around = {
    lead: spaceOf(from.lead, mine.lead, yours.lead),
    tail: spaceOf(from.tail, mine.tail, yours.tail),
  };
  return { left: textOf(sides.left, blank, around), right: textOf(sides.right, blank, around) };
}

/** Paragraphs that both sides changed. */
function mergeParagraphs(
  base: readonly Paragraph[],
  left: readonly Paragraph[],
  right: readonly Paragraph[],
): Pair<readonly Paragraph[]> {
  const [mine, yours] = [left, right].map((side) => side.map(({ text }) => text)) as [string[], string[]];
  if (mine.join("\0") === yours.join("\0")) return agreed(withGaps(left, left, right));
  if (base.length === 0 && !mine.some((text) => yours.includes(text))) {
    const isLeftFirst = inEitherOrder(mine, yours)[0] === mine;
    return agreed(isLeftFirst ? [...left, ...right] : [...right, ...left]);
  }
  const gap = spaceOf("", left.at(-1)?.gap ?? "", right.at(-1)?.gap ?? "");
  const asOne = (lines: readonly string[]) => (lines.length === 0 ? [] : [{ text: lines.join("\n"), gap }]);
  const merged = mergeLines(linesOf(base), linesOf(left), linesOf(right));
  return { left: asOne(merged.left), right: asOne(merged.right) };
}

function mergeLines(
  base: readonly string[],
  left: readonly string[],
  right: readonly string[],
): Pair<readonly string[]> {
  const sides: { left: string[]; right: string[] } = { left: [], right: [] };
  for (const part of threeWay(base, left, right)) {
    const mine = part.kind === "right" ? right.slice(...part.right) : left.slice(...part.left);
    const yours = part.kind === "left" || part.kind === "same" ? mine : right.slice(...part.right);
    sides.left.push(...mine);
    sides.right.push(...yours);
  }
  return sides;
}

function linesOf(paragraphs: readonly Paragraph[]): readonly string[] {
  return paragraphs.length === 0 ? [] : textOf(paragraphs, "\n\n", { lead: "", tail: "" }).split("\n");
}

/** The same paragraphs, with the white space of the side that changed it. */
function withGaps(
  base: readonly Paragraph[],
  left: readonly Paragraph[],
  right: readonly Paragraph[],
): readonly Paragraph[] {
  return base.map(({ text, gap }, at) => ({ text, gap: spaceOf(gap, left[at]!.gap, right[at]!.gap) }));
}

/** White space is nobody's contradiction: the longer one. */
function spaceOf(base: string, left: string, right: string): string {
  const merged = mergeValue(base, left, right);
  if (merged.left.length !== merged.right.length)
    return merged.left.length > merged.right.length ? merged.left : merged.right;
  return merged.left > merged.right ? merged.left : merged.right;
}

const textsOf = ({ paragraphs }: Prose) => paragraphs.map(({ text }) => text);

/** `blank` goes after what was the last paragraph on its side and no longer is. */
function textOf(
  paragraphs: readonly Paragraph[],
  blank: string,
  { lead, tail }: { readonly lead: string; readonly tail: string },
): string {
  const isLast = (at: number) => at === paragraphs.length - 1;
  const inner = paragraphs.map(({ text, gap }, at) => text + (isLast(at) ? tail : gap === "" ? blank : gap));
  return `${lead}${inner.join("")}`;
}

function proseOf(whole: string): Prose {
  const body = whole.trimEnd();
  const first = body.search(/\S/);
  const start = first === -1 ? 0 : body.lastIndexOf("\n", first) + 1;
  const parts = body.slice(start).split(/(\n(?:[^\S\n]*\n)+)/);
  const paragraphs: Paragraph[] = [];
  for (let at = 0; at < parts.length; at += 2)
    if (parts[at] !== "") paragraphs.push({ text: parts[at]!, gap: parts[at + 1] ?? "" });
  return { lead: body.slice(0, start), paragraphs, tail: whole.slice(body.length) };
}
