import { encodeIssue } from "../model";
import { conflictText, type Marks, sidesOf } from "./conflict-file";
import { type MergedIssue, mergeIssues, mergeWithEither } from "./issue";
import { readWhole } from "./reading";
import { isEqual } from "./values";

/** What to write; or why these files can only be merged as text. */
export type MergedFile =
  | { readonly text: string; readonly conflicts: readonly string[]; readonly merged: MergedIssue }
  | { readonly why: string };

/** Three versions of an `issue.json`, of which the base is empty or absent where both sides added the file. */
export function mergeIssueFiles(base: string | null, left: string, right: string, marks: Marks): MergedFile {
  const [mine, yours] = [readWhole(left), readWhole(right)];
  if ("why" in mine) return { why: `${marks.left}: ${mine.why}` };
  if ("why" in yours) return { why: `${marks.right}: ${yours.why}` };
  if (mine.issue.id !== yours.issue.id) return { why: "they are two different issues" };
  const merged = mergeWith(base, mine.issue, yours.issue);
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

type Issue = MergedIssue["left"];

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
