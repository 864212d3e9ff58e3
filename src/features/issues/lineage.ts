import { ANCESTOR_DIGITS, type Issue, MOST_ANCESTORS } from "./model";

type Sha256 = (text: string) => string;

/**
 * What a version says of those it was made from: digests of their whole content, the newest first. It is taken from the
 * very copy that was changed, never from version numbers: a write that did not see the newest copy has a higher number
 * than that one, and does not contain it. Copies that are further apart than a stamp remembers are merged as if neither
 * came from the other.
 */
export function lineageAfter(parents: readonly Issue[], sha256: Sha256): string {
  const own = parents.map((parent) => digestOf(parent, sha256));
  const before = parents.flatMap(({ stamp }) => stamp.lineage?.split(" ") ?? []);
  // Of a merge, the same whichever side is the left one.
  const all = parents.length === 1 ? [...own, ...before] : [...own.sort(), ...before.sort()];
  return [...new Set(all)].slice(0, MOST_ANCESTORS).join(" ");
}

/**
 * The copy that contains the other one, if either does: whoever made it had seen the other, to the letter. Where both
 * come from something newer than the older copy, that copy is somebody's way back, and a change like any other.
 */
export function descendantOf(base: Issue | null, left: Issue, right: Issue, sha256: Sha256): Issue | null {
  const [older, newer] = left.stamp.version < right.stamp.version ? [left, right] : [right, left];
  if (older.stamp.version === newer.stamp.version || !contains(newer, older, sha256)) return null;
  return base === null || contains(older, base, sha256) ? newer : null;
}

/** Whether a version is the other one, or was made from it, as far as its stamp remembers. */
export function isOrContains(newer: Issue, older: Issue, sha256: Sha256): boolean {
  return digestOf(newer, sha256) === digestOf(older, sha256) || contains(newer, older, sha256);
}

function contains(newer: Issue, older: Issue, sha256: Sha256): boolean {
  return newer.stamp.lineage?.split(" ").includes(digestOf(older, sha256)) ?? false;
}

function digestOf(issue: Issue, sha256: Sha256): string {
  return sha256(JSON.stringify(issue, inOrder)).slice(0, ANCESTOR_DIGITS);
}

/** The order of fields says nothing. */
function inOrder(_: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const fields = value as Record<string, unknown>;
  return Object.fromEntries(
    Object.keys(fields)
      .sort()
      .map((name) => [name, fields[name]]),
  );
}
