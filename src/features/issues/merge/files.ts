import { descendantOf, lineageAfter } from "../lineage";
import { encodeIssue, type Issue } from "../model";
import { conflictText, type Marks, sidesOf } from "./conflict-file";
import { type MergedIssue, mergeIssues, mergeWithEither } from "./issue";
import { isEqual } from "./values";
import { readWhole } from "./whole-file";

/** What to write; or why these files can only be merged as text. */
export type MergedFile =
  | { readonly text: string; readonly conflicts: readonly string[]; readonly merged: MergedIssue }
  | { readonly why: string };

/** Three versions of an `issue.json`, of which the base is empty or absent where both sides added the file. */
export function mergeIssueFiles(
  base: string | null,
  left: string,
  right: string,
  marks: Marks,
  sha256: (text: string) => string,
): MergedFile {
  const [mine, yours] = [readWhole(left), readWhole(right)];
  if ("why" in mine) return { why: `${marks.left}: ${mine.why}` };
  if ("why" in yours) return { why: `${marks.right}: ${yours.why}` };
  if (mine.issue.id !== yours.issue.id) return { why: "they are two different issues" };
  const common = commonIn(base, mine.issue);
  const newer = common === "unclear" ? null : descendantOf(common, mine.issue, yours.issue, sha256);
  if (newer !== null)
    return {
      text: newer === mine.issue ? left : right,
      conflicts: [],
      merged: { left: newer, right: newer, conflicts: [] },
    };
  const found = mergeWith(base, mine.issue, yours.issue);
  const merged = found === null ? null : withLineage(found, [mine.issue, yours.issue], sha256);
  if (merged === null) return { why: "what both come from cannot be read" };
  const { conflicts } = merged;
  if (conflicts.length > 0) return { text: conflictText(merged, marks), conflicts, merged };
  // What is one side's whole content stays as that side has written it, to the byte.
  const text = [
    { text: left, issue: mine.issue },
    { text: right, issue: yours.issue },
  ]
    .filter(({ issue }) => isEqual(issue, merged.left))
    .map((side) => side.text)
    .sort()[0];
  return { text: text ?? encodeIssue(merged.left), conflicts, merged };
}

/** A new stamp says what it was made from; one that was kept says so already. */
export function withLineage(
  merged: MergedIssue,
  sides: readonly [Issue, Issue],
  sha256: (text: string) => string,
): MergedIssue {
  if (sides.some(({ stamp }) => isEqual(stamp, merged.left.stamp))) return merged;
  const stamp = { ...merged.left.stamp, lineage: lineageAfter(sides, sha256) };
  return { ...merged, left: { ...merged.left, stamp }, right: { ...merged.right, stamp } };
}

/** Null where both sides added the file. */
function commonIn(base: string | null, { id }: Issue): Issue | null | "unclear" {
  if (base === null || base.trim() === "") return null;
  const reading = readWhole(base);
  return "issue" in reading && reading.issue.id === id ? reading.issue : "unclear";
}

function mergeWith(base: string | null, left: Issue, right: Issue): MergedIssue | null {
  if (base === null || base.trim() === "") return mergeIssues(null, left, right);
  const reading = readWhole(base);
  if ("issue" in reading)
    return reading.issue.id === left.id ? mergeIssues(reading.issue, left, right) : null;
  const sides = sidesOf(base);
  if (sides === null) return null;
  const [one, other] = [readWhole(sides.left), readWhole(sides.right)];
  if (!("issue" in one && "issue" in other) || one.issue.id !== left.id) return null;
  return mergeWithEither({ left: one.issue, right: other.issue }, left, right);
}
