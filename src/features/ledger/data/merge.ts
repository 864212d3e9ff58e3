import { makeUlid, printable } from "../../../kernel/ids";
import { encodeComment } from "../../issues/comments";
import { descendantOf } from "../../issues/lineage";
import { withLineage } from "../../issues/merge/files";
import { mergeIssues } from "../../issues/merge/issue";
import { isEqual } from "../../issues/merge/values";
import { readWhole } from "../../issues/merge/whole-file";
import { decodeIssue, encodeIssue, type Issue } from "../../issues/model";

/** Two machines changed the same thing to different things. */
export interface Contradiction {
  readonly field: string;
  readonly kept: unknown;
  readonly other: unknown;
}

export type MergedText =
  | {
      readonly text: string;
      readonly contradictions: readonly Contradiction[];
      /** Says both values, for the issue's comments; null without contradictions. */
      readonly comment: string | null;
    }
  /** One of them cannot be read as an issue: it is left where it is. */
  | { readonly why: string };

/**
 * An issue as it stands here and there, and as it was when the two were last the same. Field by field, and the same on
 * every machine that merges the same three; of what contradicts, the newer one stands and the other is kept in a comment.
 */
export function mergeIssueTexts(
  base: string | null,
  here: string | null,
  there: string | null,
  sha256: (text: string) => string,
): MergedText {
  if (here === there) return plain(here ?? "");
  if (here === null || there === null) return alone(here, there);
  const [mine, yours] = [readWhole(here), readWhole(there)];
  if ("why" in mine) return { why: `here: ${mine.why}` };
  if ("why" in yours) return { why: `in the ledger: ${yours.why}` };
  const root = base === null ? null : readWhole(base);
  const common = root !== null && "issue" in root && root.issue.id === mine.issue.id ? root.issue : null;
  // An older copy, of a branch that was checked out or a ledger that was put back: no change by anybody.
  if (common !== null && mine.issue.stamp.version < common.stamp.version) return plain(there);
  if (common !== null && yours.issue.stamp.version < common.stamp.version) return plain(here);
  const newer =
    root === null || common !== null ? descendantOf(common, mine.issue, yours.issue, sha256) : null;
  if (newer !== null) return plain(newer === mine.issue ? here : there);
  const sides = [mine.issue, yours.issue] as const;
  const merged = withLineage(mergeIssues(common, ...sides), sides, sha256);
  if (merged.conflicts.length === 0)
    return plain(asWritten(merged.left, [here, there], [mine.issue, yours.issue]));
  const isLeft = standsLeft(merged.conflicts, mine.issue, yours.issue, here, there);
  const [kept, other] = isLeft ? [merged.left, merged.right] : [merged.right, merged.left];
  const contradictions = merged.conflicts.map((field) => ({
    field,
    kept: fieldOf(kept, field),
    other: fieldOf(other, field),
  }));
  // One side has it so already, and is newer: it was settled before, and is not settled again and again.
  const settled = [
    { text: here, issue: mine.issue, other: yours.issue },
    { text: there, issue: yours.issue, other: mine.issue },
  ].find((side) => side.issue.stamp.version > side.other.stamp.version && sameContent(side.issue, kept));
  const text = settled?.text ?? encodeIssue(kept);
  return { text, contradictions, comment: commentOf(kept, other, contradictions, sha256) };
}

/** Only one side has it. Text that is not a valid issue is not synced; one from a newer cotenant passes through unchanged. */
function alone(here: string | null, there: string | null): MergedText {
  const text = here ?? there ?? "";
  const reading = decodeIssue(text);
  if ("issue" in reading || reading.isNewer === true) return plain(text);
  return { why: `${here === null ? "in the ledger" : "here"}: ${reading.broken}` };
}

function plain(text: string): MergedText {
  return { text, contradictions: [], comment: null };
}

function sameContent({ stamp: _, ...one }: Issue, { stamp: __, ...other }: Issue): boolean {
  return isEqual(one, other);
}

/** If the merge equals one side, that side's bytes are kept. */
function asWritten(merged: Issue, texts: readonly string[], issues: readonly Issue[]): string {
  const same = texts.filter((_, i) => isEqual(issues[i], merged)).sort();
  return same[0] ?? encodeIssue(merged);
}

/** What somebody goes on working on is not deleted; else the newer one. Nothing depends on which machine asks. */
function standsLeft(
  conflicts: readonly string[],
  left: Issue,
  right: Issue,
  here: string,
  there: string,
): boolean {
  if (conflicts.includes("deleted_at") && (left.deleted_at === null) !== (right.deleted_at === null))
    return left.deleted_at === null;
  if (left.stamp.version !== right.stamp.version) return left.stamp.version > right.stamp.version;
  const [mine, yours] = [Date.parse(left.updated_at) || 0, Date.parse(right.updated_at) || 0];
  return mine === yours ? here > there : mine > yours;
}

function fieldOf(issue: Issue, field: string): unknown {
  return Object.hasOwn(issue, field) ? issue[field as keyof Issue] : issue.extra[field];
}

/** With an id that follows from what it says: two machines that merge the same leave one comment. */
function commentOf(
  kept: Issue,
  other: Issue,
  contradictions: readonly Contradiction[],
  sha256: (text: string) => string,
): string {
  const said = contradictions.map(
    ({ field, kept: a, other: b }) => `${field}: ${shown(a)} stands; the other machine had ${shown(b)}`,
  );
  const text = `Two machines changed this issue at the same time. ${said.join("\n")}`;
  const digest = sha256(`${kept.id} ${text}`);
  const bytes = Uint8Array.from({ length: 10 }, (_, i) =>
    Number.parseInt(digest.slice(2 * i, 2 * i + 2), 16),
  );
  const times = [kept.updated_at, other.updated_at].map((at) => Date.parse(at) || 0);
  const atMs = Math.max(...times);
  return encodeComment({
    id: makeUlid(atMs, bytes),
    at: new Date(atMs).toISOString(),
    by: "cotenant sync",
    text,
  });
}

function shown(value: unknown): string {
  return value === null || value === undefined
    ? "nothing"
    : `"${typeof value === "string" ? value : JSON.stringify(value)}"`;
}

/** Lines of both, each once: those of the ledger first, so that every machine ends with the same file. */
export function mergeLines(here: string, there: string): { text: string; missingHere: readonly string[] } {
  const ours = lines(here);
  const theirs = lines(there);
  const known = new Set(theirs);
  const added = ours.filter((line) => !known.has(line));
  const present = new Set(ours);
  const text =
    added.length === 0 ? there : [...theirs, ...new Set(added)].map((line) => `${line}\n`).join("");
  return { text, missingHere: theirs.filter((line) => !present.has(line)).map((line) => `${line}\n`) };
}

function lines(text: string): string[] {
  return text.split("\n").filter((line) => line.trim() !== "");
}

/** For people. */
export function contradictionWords({ field, kept, other }: Contradiction): string {
  return `${field}: ${printable(shown(kept), 80)} stands, ${printable(shown(other), 80)} is kept in a comment`;
}
