import { isObject } from "../../../codec/json";
import { type Span, threeWay } from "./sequence";

/** What a merge leaves: the same on both sides, or what each side has where they contradict each other. */
export interface Pair<T> {
  readonly left: T;
  readonly right: T;
}

export function agreed<T>(value: T): Pair<T> {
  return { left: value, right: value };
}

/** The one that changed; both, if both did and not to the same. An absent value is `undefined`. */
export function mergeValue<T>(base: T, left: T, right: T): Pair<T> {
  if (isEqual(left, right)) return agreed(left);
  if (isEqual(left, base)) return agreed(right);
  return isEqual(right, base) ? agreed(left) : { left, right };
}

/** The same, but objects name by name at any depth. Lists are one value: nobody says what their order means. */
export function mergeJson(base: unknown, left: unknown, right: unknown): Pair<unknown> {
  const plain = mergeValue(base, left, right);
  if (plain.left === plain.right || !isObject(left) || !isObject(right)) return plain;
  return mergeRecords(isObject(base) ? base : {}, left, right, mergeJson);
}

type Named<T> = Readonly<Record<string, T>>;

/** Name by name, with a name that one side removed and the other changed being a contradiction. */
export function mergeRecords<T>(
  base: Named<T>,
  left: Named<T>,
  right: Named<T>,
  mergeOne: (base: T | undefined, left: T | undefined, right: T | undefined) => Pair<T | undefined>,
): Pair<Named<T>> {
  const own = (record: Named<T>, name: string) => (Object.hasOwn(record, name) ? record[name] : undefined);
  const sides: Pair<[string, T][]> = { left: [], right: [] };
  for (const name of mergedOrder(Object.keys(base), Object.keys(left), Object.keys(right))) {
    const merged = mergeOne(own(base, name), own(left, name), own(right, name));
    if (merged.left !== undefined) sides.left.push([name, merged.left]);
    if (merged.right !== undefined) sides.right.push([name, merged.right]);
  }
  // Never by assignment: a name may be `__proto__`.
  return { left: Object.fromEntries(sides.left), right: Object.fromEntries(sides.right) };
}

/** A set: what either side added is in it, and what either side removed is not. */
export function mergeSet(
  base: readonly string[],
  left: readonly string[],
  right: readonly string[],
): readonly string[] {
  if (isEqual(left, right) || isEqual(right, base)) return left;
  if (isEqual(left, base)) return right;
  const [inBase, inLeft, inRight] = [new Set(base), new Set(left), new Set(right)];
  const stays = (name: string) =>
    inBase.has(name) ? inLeft.has(name) && inRight.has(name) : inLeft.has(name) || inRight.has(name);
  return mergedOrder(base, left, right).filter(stays);
}

/** All that is in the left or the right, once, each where its side has put it. */
function mergedOrder(
  base: readonly string[],
  left: readonly string[],
  right: readonly string[],
): readonly string[] {
  const found = new Set<string>();
  const add = (from: readonly string[], [start, end]: Span) => {
    for (const name of from.slice(start, end)) found.add(name);
  };
  for (const part of threeWay(base, left, right)) {
    if (part.kind === "same") add(base, part.base);
    else if (part.kind === "left") add(left, part.left);
    else if (part.kind === "right") add(right, part.right);
    else {
      const [mine, yours] = [left.slice(...part.left), right.slice(...part.right)];
      for (const name of inEitherOrder(mine, yours).flat()) found.add(name);
    }
  }
  const rest = [...left, ...right].filter((name) => !found.has(name)).sort();
  const known = new Set([...left, ...right]);
  return [...new Set([...found, ...rest])].filter((name) => known.has(name));
}

/** Two lists in an order that does not depend on which one is the left. */
export function inEitherOrder(
  left: readonly string[],
  right: readonly string[],
): readonly (readonly string[])[] {
  return JSON.stringify(left) <= JSON.stringify(right) ? [left, right] : [right, left];
}

export function isEqual(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((item, at) => isEqual(item, other[at]));
  }
  if (!isObject(one) || !isObject(other)) return false;
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  return names.every((name) => Object.hasOwn(other, name) && isEqual(one[name], other[name]));
}
