import { LARGEST_COUNT } from "../../../kernel/bounds";
import type { DocumentRef, Issue, Stamp } from "../model";
import { mergeText } from "./text";
import { agreed, isEqual, mergeJson, mergeRecords, mergeSet, mergeValue, type Pair } from "./values";

/** Everything of an issue but its stamp. */
type Content = Omit<Issue, "stamp">;
type Field = keyof Content;

/** The merged issue as each side would have it. Without contradictions the two are the same. */
export interface MergedIssue extends Pair<Issue> {
  /** Fields that contradict, in the order of the file. */
  readonly conflicts: readonly string[];
}

/**
 * Two copies of one issue and what they come from, which is absent when both were added. A field that one side changed is
 * that side's. Nothing depends on which side is the left one, nor on clock or machine: whoever merges the same two gets the
 * same bytes.
 */
export function mergeIssues(base: Issue | null, left: Issue, right: Issue): MergedIssue {
  return whole(mergeContent(base, left, right), [base, left, right]);
}

/**
 * For a base that is itself an unresolved merge, as Git makes it of several common ancestors: whatever comes out
 * differently with either reading of the base is for a person to decide.
 */
export function mergeWithEither(bases: Pair<Issue>, left: Issue, right: Issue): MergedIssue {
  const one = mergeContent(bases.left, left, right);
  const other = mergeContent(bases.right, left, right);
  const merged: Pair<Record<string, unknown>> = { left: { ...one.left }, right: { ...one.right } };
  for (const field of fieldsOf(left)) {
    if (isEqual(one.left[field], other.left[field]) && isEqual(one.right[field], other.right[field]))
      continue;
    merged.left[field] = left[field];
    merged.right[field] = right[field];
  }
  return whole(merged as unknown as Pair<Content>, [bases.left, bases.right, left, right]);
}

const fieldsOf = (issue: Content) => Object.keys(issue).filter((name) => name !== "stamp") as Field[];

/** With its stamp: that of one side, where the merge has only brought the other up to it; else a new one. */
function whole(merged: Pair<Content>, copies: readonly (Issue | null)[]): MergedIssue {
  const [left, right] = copies.slice(-2) as [Issue, Issue];
  const conflicts = fieldsOf(merged.left).flatMap((field) =>
    field === "extra"
      ? namesThatDiffer(merged.left.extra, merged.right.extra)
      : isEqual(merged.left[field], merged.right[field])
        ? []
        : [field],
  );
  const stamp = (conflicts.length === 0 ? keptStamp(merged.left, left, right) : null) ?? newStamp(copies);
  return { left: { ...merged.left, stamp }, right: { ...merged.right, stamp }, conflicts };
}

function namesThatDiffer(one: Issue["extra"], other: Issue["extra"]): string[] {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  const own = (record: Issue["extra"], name: string) =>
    Object.hasOwn(record, name) ? record[name] : undefined;
  return [...names].filter((name) => !isEqual(own(one, name), own(other, name)));
}

/** A side's own stamp, if nobody who saw the other copy could take that one for newer. */
function keptStamp(merged: Content, left: Issue, right: Issue): Stamp | null {
  const [isLeft, isRight] = [left, right].map(({ stamp: _, ...content }) => isEqual(content, merged));
  const newest = newestStamp(left.stamp, right.stamp);
  if (isLeft && isRight) return newest;
  if (left.stamp.version === right.stamp.version) return null;
  return (isLeft && newest === left.stamp) || (isRight && newest === right.stamp) ? newest : null;
}

function newestStamp(left: Stamp, right: Stamp): Stamp {
  if (left.version !== right.version) return left.version > right.version ? left : right;
  return JSON.stringify(left) >= JSON.stringify(right) ? left : right;
}

function newStamp(copies: readonly (Issue | null)[]): Stamp {
  const highest = Math.max(...copies.map((copy) => copy?.stamp.version ?? 0));
  const version = Math.min(highest + 1, LARGEST_COUNT);
  return { version, origin: "merge", lease_id: null, fencing_token: null, sequence: null };
}

function mergeContent(base: Issue | null, left: Issue, right: Issue): Pair<Content> {
  const isDisputed = isDeletedAndChanged(base, left, right);
  const mine = isDisputed ? withoutEmptying(base, left) : left;
  const yours = isDisputed ? withoutEmptying(base, right) : right;
  const pairs: { readonly [F in Field]: Pair<Content[F]> } = {
    schema_version: agreed(left.schema_version),
    id: agreed(left.id),
    title: mergeValue<string | undefined>(base?.title, mine.title, yours.title) as Pair<string>,
    description: mergeText(base?.description ?? "", mine.description, yours.description),
    state: mergeValue<Issue["state"] | undefined>(base?.state, mine.state, yours.state) as Pair<
      Issue["state"]
    >,
    priority: mergeValue<Issue["priority"] | undefined>(
      base?.priority,
      mine.priority,
      yours.priority,
    ) as Pair<Issue["priority"]>,
    assignee: mergeValue(base?.assignee ?? null, mine.assignee, yours.assignee),
    resolution: mergeValue(base?.resolution ?? null, mine.resolution, yours.resolution),
    gates: agreed(mergeSet(base?.gates ?? [], mine.gates, yours.gates)),
    documents: mergeDocuments(base?.documents ?? [], mine.documents, yours.documents),
    files: agreed(mergeSet(base?.files ?? [], mine.files, yours.files)),
    context: mergeRecords(base?.context ?? {}, mine.context, yours.context, mergeValue),
    ...created(base, left, right),
    ...updated(left, right),
    deleted_at: isDisputed
      ? { left: left.deleted_at, right: right.deleted_at }
      : deletedAt(base, left, right),
    extra: mergeRecords(base?.extra ?? {}, mine.extra, yours.extra, mergeJson),
  };
  const side = (which: keyof Pair<unknown>) =>
    Object.fromEntries(
      Object.entries(pairs).map(([name, pair]) => [name, pair[which]]),
    ) as unknown as Content;
  return { left: side("left"), right: side("right") };
}

/** One side deleted it while the other went on working on it. */
function isDeletedAndChanged(base: Issue | null, left: Issue, right: Issue): boolean {
  if ((left.deleted_at === null) === (right.deleted_at === null)) return false;
  const living = left.deleted_at === null ? left : right;
  if (base === null) return true;
  const { updated_at, updated_by } = living;
  if (isEqual({ ...base, updated_at, updated_by, stamp: living.stamp }, living)) return false;
  // Brought back on one side, and left as deleted as it was on the other: that is no contradiction.
  return base.deleted_at === null || !isEqual(contentOf(base), contentOf(left === living ? right : left));
}

function contentOf({ stamp: _, updated_at: _at, updated_by: _by, ...content }: Issue): object {
  return content;
}

/** A tombstone may have thrown its text away; whoever decides against the deletion must still find it. */
function withoutEmptying(base: Issue | null, side: Issue): Issue {
  if (base === null || side.deleted_at === null) return side;
  const isEmpty = (value: unknown) =>
    value === null || value === "" || (typeof value === "object" && Object.keys(value).length === 0);
  const fields = Object.entries(side).map(([name, value]) => [
    name,
    isEmpty(value) ? base[name as keyof Issue] : value,
  ]);
  return Object.fromEntries(fields) as unknown as Issue;
}

/** Deleted on both sides at different times is deleted. */
function deletedAt(base: Issue | null, left: Issue, right: Issue): Pair<string | null> {
  if (left.deleted_at === null || right.deleted_at === null)
    return mergeValue(base?.deleted_at ?? null, left.deleted_at, right.deleted_at);
  return agreed(isEarlier(left.deleted_at, right.deleted_at) ? left.deleted_at : right.deleted_at);
}

/** By path. Who added one, and when, is never a contradiction: whoever was first. */
function mergeDocuments(
  base: readonly DocumentRef[],
  left: readonly DocumentRef[],
  right: readonly DocumentRef[],
): Pair<readonly DocumentRef[]> {
  if (isEqual(left, right) || isEqual(right, base)) return agreed(left);
  if (isEqual(left, base)) return agreed(right);
  const byPath = (documents: readonly DocumentRef[]) =>
    Object.fromEntries(documents.map((document) => [document.path, document]));
  const merged = mergeRecords(byPath(base), byPath(left), byPath(right), mergeDocument);
  return { left: Object.values(merged.left), right: Object.values(merged.right) };
}

function mergeDocument(
  base: DocumentRef | undefined,
  left: DocumentRef | undefined,
  right: DocumentRef | undefined,
): Pair<DocumentRef | undefined> {
  const plain = mergeValue(base, left, right);
  if (plain.left === undefined || plain.right === undefined || plain.left === plain.right) return plain;
  const [mine, yours] = [plain.left, plain.right];
  const isFirst =
    mine.added_at === yours.added_at
      ? mine.added_by <= yours.added_by
      : isEarlier(mine.added_at, yours.added_at);
  const { added_at, added_by } = isFirst ? mine : yours;
  const title = mergeValue<string | null | undefined>(base?.title, mine.title, yours.title) as Pair<
    string | null
  >;
  const one = (which: keyof Pair<unknown>) => ({ path: mine.path, title: title[which], added_at, added_by });
  return title.left === title.right ? agreed(one("left")) : { left: one("left"), right: one("right") };
}

/** Nobody changes these; where somebody did, the earlier one. */
function created(base: Issue | null, left: Issue, right: Issue) {
  const of = (issue: Issue | null) => ({ at: issue?.created_at ?? "", by: issue?.created_by ?? "" });
  const { left: mine, right: yours } = mergeValue(of(base), of(left), of(right));
  const isMine = mine.at === yours.at ? mine.by <= yours.by : isEarlier(mine.at, yours.at);
  const { at, by } = isMine ? mine : yours;
  return { created_at: agreed(at), created_by: agreed(by) };
}

/** The newest of the two: a merge is not somebody's work on the issue. */
function updated(left: Issue, right: Issue) {
  const isRight =
    left.updated_at === right.updated_at
      ? left.updated_by <= right.updated_by
      : isEarlier(left.updated_at, right.updated_at);
  const { updated_at, updated_by } = isRight ? right : left;
  return { updated_at: agreed(updated_at), updated_by: agreed(updated_by) };
}

/** Of two different instants as text. What is none is the earliest of all. */
function isEarlier(one: string, other: string): boolean {
  const [mine, yours] = [one, other].map((text) => {
    const instant = Date.parse(text);
    return Number.isNaN(instant) ? Number.NEGATIVE_INFINITY : instant;
  }) as [number, number];
  return mine === yours ? one < other : mine < yours;
}
