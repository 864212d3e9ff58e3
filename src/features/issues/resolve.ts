import type { Ulid } from "../../kernel/ids";
import type { RawIssue } from "./folder";
import { decodeIssue, type Issue, type IssueReading, type IssueState } from "./model";
import { readOrSet } from "./or-set";
import type { WrittenStamp } from "./stamps";

/** Where a copy stands. Of copies that are equal, the first of these counts. */
const LAYERS = ["holder", "worktree", "main", "elsewhere", "HEAD"] as const;
export type Layer = (typeof LAYERS)[number];

export interface Copy {
  readonly layer: Layer;
  /** The worktree's root; null for HEAD. */
  readonly root: string | null;
  readonly raw: RawIssue;
  readonly reading: IssueReading;
}

/** An issue as its newest copy has it. */
export interface FoundIssue {
  readonly id: Ulid;
  readonly issue: Issue;
  readonly labels: readonly string[];
  readonly dependencies: readonly string[];
  readonly copy: Copy;
  /** Copies of the same version that say something else. */
  readonly diverged: readonly Copy[];
  /** Copies that cannot be read. */
  readonly broken: readonly Copy[];
  /** A newer write than any copy here has: known to have been, and where. */
  readonly ahead: WrittenStamp | null;
  /** What counts for others: of the newest write, wherever it is. */
  readonly state: IssueState;
  readonly isDeleted: boolean;
}

/** No copy of it can be read. */
export interface UnreadableIssue {
  readonly id: Ulid;
  readonly broken: readonly Copy[];
}

export function copyFrom(layer: Layer, root: string | null, raw: RawIssue): Copy {
  return { layer, root, raw, reading: decodeIssue(raw.text) };
}

/** Versions decide. Null where there is no copy at all. */
export function resolve(
  id: Ulid,
  copies: readonly Copy[],
  stamp: WrittenStamp | null,
): FoundIssue | UnreadableIssue | null {
  const broken = copies.filter((copy) => !isOf(copy, id));
  const whole = copies.filter((copy) => isOf(copy, id)).sort(byNearness);
  const [nearest] = whole;
  if (nearest === undefined) return broken.length > 0 ? { id, broken } : null;
  const newest = whole.reduce((best, copy) => (versionOf(copy) > versionOf(best) ? copy : best), nearest);
  const { issue } = newest.reading as { issue: Issue };
  const ahead = stamp !== null && stamp.version > issue.stamp.version ? stamp : null;
  return {
    id,
    issue,
    labels: readOrSet(newest.raw.labels).values,
    dependencies: readOrSet(newest.raw.dependencies).values,
    copy: newest,
    diverged: whole.filter(
      (copy) => versionOf(copy) === versionOf(newest) && copy.raw.text !== newest.raw.text,
    ),
    broken,
    ahead,
    state: ahead?.state ?? issue.state,
    isDeleted: ahead?.isDeleted ?? issue.deleted_at !== null,
  };
}

export function isFound(found: FoundIssue | UnreadableIssue | null): found is FoundIssue {
  return found !== null && "issue" in found;
}

/** A file in another issue's folder is nobody's. */
function isOf({ reading }: Copy, id: Ulid): boolean {
  return "issue" in reading && reading.issue.id === id;
}

function byNearness(a: Copy, b: Copy): number {
  return LAYERS.indexOf(a.layer) - LAYERS.indexOf(b.layer);
}

export function versionOf({ reading }: Copy): number {
  return "issue" in reading ? reading.issue.stamp.version : -1;
}
