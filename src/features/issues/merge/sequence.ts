/** A stretch of the base, and what one side has in its place. One of the two may be empty. */
interface Hunk {
  /** In the base, from and up to. */
  readonly at: number;
  readonly end: number;
  /** In the side. */
  readonly from: number;
  readonly to: number;
}

/** A part of a three-way merge, in the order of the base. Numbers are places in the three sequences. */
export type Part =
  | { readonly kind: "same"; readonly base: Span; readonly left: Span; readonly right: Span }
  | { readonly kind: "left"; readonly left: Span }
  | { readonly kind: "right"; readonly right: Span }
  | { readonly kind: "both"; readonly base: Span; readonly left: Span; readonly right: Span };

export type Span = readonly [from: number, to: number];

/** Beyond as many insertions and deletions two texts have nothing to do with each other, and looking costs a lot. */
const MOST_EDITS = 1_000;

/**
 * What became of a sequence on two sides. Changes that only touch each other are each side's own; those that overlap, or
 * insert at the same place, are both sides'.
 */
export function threeWay(
  base: readonly string[],
  left: readonly string[],
  right: readonly string[],
): readonly Part[] {
  const sides = [hunksOf(base, left), hunksOf(base, right)] as const;
  const parts: Part[] = [];
  /** How far we are, in the base and in each side. */
  let done = 0;
  let offsets: readonly [number, number] = [0, 0];
  const keep = (until: number) => {
    const span = (by: number): Span => [done + by, until + by];
    if (until > done)
      parts.push({ kind: "same", base: span(0), left: span(offsets[0]), right: span(offsets[1]) });
    done = until;
  };
  for (const { span, own } of groupsOf(sides)) {
    keep(span[0]);
    const [inLeft, inRight] = [0, 1].map((side) => placeOf(own[side]!, span, offsets[side]!)) as [Span, Span];
    if (own[1]!.length === 0) parts.push({ kind: "left", left: inLeft });
    else if (own[0]!.length === 0) parts.push({ kind: "right", right: inRight });
    else parts.push({ kind: "both", base: span, left: inLeft, right: inRight });
    done = span[1];
    offsets = [inLeft[1] - span[1], inRight[1] - span[1]];
  }
  keep(base.length);
  return parts;
}

interface Group {
  readonly span: Span;
  readonly own: readonly [readonly Hunk[], readonly Hunk[]];
}

/** Hunks that have to be looked at together, those of the left in front. */
function groupsOf(sides: readonly [readonly Hunk[], readonly Hunk[]]): Group[] {
  const all = sides.flatMap((hunks, side) => hunks.map((hunk) => ({ hunk, side })));
  all.sort((one, other) => one.hunk.at - other.hunk.at || one.hunk.end - other.hunk.end);
  const groups: { span: [number, number]; own: [Hunk[], Hunk[]] }[] = [];
  for (const { hunk, side } of all) {
    const last = groups.at(-1);
    if (last !== undefined && meets(last.span, hunk)) {
      last.own[side]!.push(hunk);
      last.span[1] = Math.max(last.span[1], hunk.end);
    } else {
      groups.push({ span: [hunk.at, hunk.end], own: side === 0 ? [[hunk], []] : [[], [hunk]] });
    }
  }
  return groups;
}

/** Of a hunk that begins no earlier: it overlaps, or both only insert, at the same place. */
function meets([at, end]: Span, hunk: Hunk): boolean {
  return hunk.at < end || (at === end && hunk.at === at && hunk.end === at);
}

/** Where a side has what became of a stretch of the base. */
function placeOf(own: readonly Hunk[], [at, end]: Span, offset: number): Span {
  const [first, last] = [own[0], own.at(-1)];
  if (first === undefined || last === undefined) return [at + offset, end + offset];
  return [first.from - (first.at - at), last.to + (end - last.end)];
}

/** The shortest way from one to the other, as far as it is worth looking for. */
function hunksOf(base: readonly string[], side: readonly string[]): Hunk[] {
  let start = 0;
  const most = Math.min(base.length, side.length);
  while (start < most && base[start] === side[start]) start++;
  let tail = 0;
  while (tail < most - start && base[base.length - 1 - tail] === side[side.length - 1 - tail]) tail++;
  const whole: Hunk = { at: start, end: base.length - tail, from: start, to: side.length - tail };
  if (whole.at === whole.end && whole.from === whole.to) return [];
  if (whole.at === whole.end || whole.from === whole.to) return [whole];
  const kept = commonOf(base.slice(start, whole.end), side.slice(start, whole.to));
  return kept === null ? [whole] : between(kept, whole);
}

/** What lies between the pairs that stay as they are, whose places count from the hunk's beginning. */
function between(kept: readonly (readonly [number, number])[], whole: Hunk): Hunk[] {
  const hunks: Hunk[] = [];
  let [at, from] = [whole.at, whole.from];
  for (const [inBase, inSide] of [...kept, [whole.end - whole.at, whole.to - whole.from]] as const) {
    const [end, to] = [whole.at + inBase, whole.from + inSide];
    if (end > at || to > from) hunks.push({ at, end, from, to });
    [at, from] = [end + 1, to + 1];
  }
  return hunks;
}

/** Myers' greedy search for the longest common subsequence. Null beyond MOST_EDITS. */
function commonOf(a: readonly string[], b: readonly string[]): [number, number][] | null {
  const limit = Math.min(a.length + b.length, MOST_EDITS);
  /** How far each diagonal reaches, before each round. */
  const rounds: Int32Array[] = [];
  const reach = new Int32Array(2 * limit + 3);
  const middle = limit + 1;
  for (let edits = 0; edits <= limit; edits++) {
    rounds.push(reach.slice(middle - edits - 1, middle + edits + 2));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const isDown = isDownwards(diagonal, edits, reach, middle);
      let x = isDown ? reach[middle + diagonal + 1]! : reach[middle + diagonal - 1]! + 1;
      while (x < a.length && x - diagonal < b.length && a[x] === b[x - diagonal]) x++;
      reach[middle + diagonal] = x;
      if (x >= a.length && x - diagonal >= b.length) return pathOf(rounds, a.length, b.length);
    }
  }
  return null;
}

function isDownwards(diagonal: number, edits: number, reach: Int32Array, middle: number): boolean {
  if (diagonal === -edits) return true;
  return diagonal !== edits && reach[middle + diagonal - 1]! < reach[middle + diagonal + 1]!;
}

/** Back along the rounds: the pairs that were passed without an edit. */
function pathOf(rounds: readonly Int32Array[], length: number, other: number): [number, number][] {
  const pairs: [number, number][] = [];
  let [x, y] = [length, other];
  for (let edits = rounds.length - 1; edits >= 0; edits--) {
    const reach = rounds[edits]!;
    const middle = edits + 1;
    const diagonal = x - y;
    const isDown = isDownwards(diagonal, edits, reach, middle);
    const before = isDown ? diagonal + 1 : diagonal - 1;
    const beforeX = edits === 0 ? 0 : reach[middle + before]!;
    const beforeY = edits === 0 ? 0 : beforeX - before;
    while (x > beforeX && y > beforeY) pairs.push([--x, --y]);
    [x, y] = [beforeX, beforeY];
  }
  return pairs.reverse();
}
