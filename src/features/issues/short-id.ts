import { CotenantError, notFoundError } from "../../errors/cotenant-error";
import { foldCrockford, parseUlid, printable, type Ulid } from "../../kernel/ids";
import { isRefusal } from "../../kernel/refusal";

/** The random half of a ULID: the half in which issues made in one minute differ. */
const RANDOM_HALF = 10;
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
