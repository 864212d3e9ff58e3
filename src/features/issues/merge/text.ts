import { threeWay } from "./sequence";
import { agreed, inEitherOrder, isEqual, mergeValue, type Pair } from "./values";

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
  const merged = threeWay(textsOf(from), textsOf(mine), textsOf(yours)).map((part) => {
    if (part.kind === "left") return agreed(mine.paragraphs.slice(...part.left));
    if (part.kind === "right") return agreed(yours.paragraphs.slice(...part.right));
    const three = [
      from.paragraphs.slice(...part.base),
      mine.paragraphs.slice(...part.left),
      yours.paragraphs.slice(...part.right),
    ] as const;
    return part.kind === "same" ? agreed(withGaps(...three)) : mergeParagraphs(...three);
  });
  const blank = from.paragraphs.length > 1 ? from.paragraphs[0]!.gap : "\n\n";
  const around = {
    lead: spaceOf(from.lead, mine.lead, yours.lead),
    tail: spaceOf(from.tail, mine.tail, yours.tail),
  };
  const whole = (side: keyof Pair<unknown>) =>
    textOf(
      merged.flatMap((part) => part[side]),
      blank,
      around,
    );
  return { left: whole("left"), right: whole("right") };
}

/** Paragraphs that both sides changed. */
function mergeParagraphs(
  base: readonly Paragraph[],
  left: readonly Paragraph[],
  right: readonly Paragraph[],
): Pair<readonly Paragraph[]> {
  const [mine, yours] = [left, right].map((side) => side.map(({ text }) => text)) as [string[], string[]];
  if (isEqual(mine, yours))
    return agreed(left.map(({ text, gap }, at) => ({ text, gap: spaceOf("", gap, right[at]!.gap) })));
  const theirs = new Set(yours);
  if (base.length === 0 && !mine.some((text) => theirs.has(text))) {
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
  const merged = threeWay(base, left, right).map((part): Pair<readonly string[]> => {
    if (part.kind === "right") return agreed(right.slice(...part.right));
    const mine = left.slice(...part.left);
    return part.kind === "both" ? { left: mine, right: right.slice(...part.right) } : agreed(mine);
  });
  return { left: merged.flatMap((part) => part.left), right: merged.flatMap((part) => part.right) };
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
