import { CotenantError, notFoundError } from "../../errors/cotenant-error";
import { foldCrockford, parseUlid, printable, type Ulid } from "../../kernel/ids";
import { isRefusal } from "../../kernel/refusal";

const LENGTH = 26;
/** Where the random half of a ULID begins: the half in which issues made in one minute differ. */
export const RANDOM_HALF = 10;
const SHORTEST = 4;

/** The shortest part of an id's random half that names it and no other. */
export function shortId(id: string, all: Iterable<Ulid>): string {
  const own = id.slice(RANDOM_HALF);
  let length = SHORTEST;
  for (const other of all) {
    if (other === id) continue;
    let same = 0;
    while (same < own.length && other[RANDOM_HALF + same] === own[same]) same++;
    length = Math.max(length, same + 1);
  }
  return own.slice(0, length).toLowerCase();
}

/** The same for each of many, without comparing each with all. */
export function shortIds(all: Iterable<Ulid>): ReadonlyMap<Ulid, string> {
  const ids = [...new Set(all)];
  const halves = ids.map((id) => id.slice(RANDOM_HALF));
  const order = Uint32Array.from(ids.keys()).sort((a, b) => (halves[a]! < halves[b]! ? -1 : 1));
  const lengths = shortLengths(order, ids);
  return new Map(ids.map((id, at) => [id, halves[at]!.slice(0, lengths[at]).toLowerCase()]));
}

/**
 * How much of each one's random half names it, and no other. Only neighbours in the order of the halves can have more in
 * common than others.
 */
export function shortLengths(byHalf: Uint32Array, ids: readonly string[]): Uint8Array {
  const lengths = new Uint8Array(byHalf.length).fill(SHORTEST);
  for (let at = 1; at < byHalf.length; at++) {
    const [one, other] = [byHalf[at - 1]!, byHalf[at]!];
    const [a, b] = [ids[one]!, ids[other]!];
    let same = RANDOM_HALF;
    while (same < LENGTH && a[same] === b[same]) same++;
    const length = Math.min(same + 1, LENGTH) - RANDOM_HALF;
    if (length > lengths[one]!) lengths[one] = length;
    if (length > lengths[other]!) lengths[other] = length;
  }
  return lengths;
}

/** The one id that `typed` means: a whole one, or the beginning of a random half. */
export function resolveId(typed: string, all: readonly Ulid[]): Ulid {
  const whole = parseUlid(typed);
  if (!isRefusal(whole)) {
    if (all.includes(whole)) return whole;
    throw notFound(typed);
  }
  if (!/^[0-9A-Za-z]{1,16}$/.test(typed)) {
    throw new CotenantError("E_USAGE", `"${printable(typed)}" is not an issue id`, {
      hint: "an issue id is 26 letters and digits, or the beginning of the short id that 'cotenant issue list' shows",
    });
  }
  const start = foldCrockford(typed);
  const found = all.filter((id) => id.startsWith(start, RANDOM_HALF));
  if (found.length === 1) return found[0]!;
  if (found.length === 0) throw notFound(typed);
  throw new CotenantError("E_AMBIGUOUS_ID", `"${printable(typed)}" could be ${found.length} issues`, {
    hint: `type more of it: ${found
      .slice(0, 5)
      .map((id) => shortId(id, all))
      .join(", ")}${found.length > 5 ? ", …" : ""}`,
    data: { candidates: found.slice(0, 20) },
  });
}

function notFound(typed: string): CotenantError {
  return notFoundError(
    `there is no issue "${printable(typed)}" in this worktree, the main one or HEAD`,
    "'cotenant issue list' shows what there is",
    { id: printable(typed) },
  );
}
