import type { OwnChange, PathChange } from "../objects/commit-text";
import type { ObjectId } from "../objects/object-name";
import { blobs } from "./changes";
import { structuralChanges } from "./commit-rules";
import { type EditSources, withEdits } from "./push-edits";
import {
  aboutCommit,
  oldest,
  type PushedCommit,
  type PushObjection,
  type PushQuestion,
  rightTo,
  shortOf,
} from "./push-rules";
import type { Witness } from "./witness";

/** A ref that is moved, from one commit to another. */
export interface TipMove {
  readonly ref: string;
  /** Null where it is new, or where it points at is not known here. */
  readonly from: ObjectId | null;
  readonly to: ObjectId;
}

/**
 * What a branch has in the end must be somebody's change too. Commits that are right each by itself can add up to another
 * one: an issue that is "created" anew where it was not, and brought in by a merge that keeps that side; or a merge that
 * drops what the branch had. `judged` are commits that were looked at, each by itself.
 */
export async function tipObjections(
  sources: EditSources,
  testify: (sinceMs: number) => Promise<Witness>,
  { ref, from, to }: TipMove,
  judged: ReadonlySet<ObjectId>,
): Promise<PushObjection[]> {
  // Other refs are nobody's working state: a tag is judged by its commits.
  if (from === null || from === to || !ref.startsWith("refs/heads/")) return [];
  const { reader } = sources;
  const changes = await reader.difference(from, to);
  const read = (oids: readonly string[]) => blobs(sources.git, sources.place, oids);
  const structural = await structuralChanges(changes, read);
  // What was added was created by a commit that was looked at.
  const concerned = structural.filter(({ change }) => change.status !== "added");
  if (concerned.length === 0) return [];
  const between = await reader.changing({ names: [to, `^${from}`], options: [] });
  const touching = await withEdits(
    sources,
    between.filter((commit) =>
      concerned.some(({ change }) => changeIn(commit.changes, change.path) !== null),
    ),
  );
  const question = { witness: await testify(oldest(touching)) };
  // A branch that is set back to where it was changes nothing: what it loses was somebody's, and still is in their history.
  const isForward = await reader.isAncestor(from, to);
  return concerned.flatMap(({ id, change }) => {
    const makers = touching.filter((commit) => changeIn(commit.changes, change.path)?.oid === change.oid);
    if (makers.some((commit) => isAccounted(question, commit, id, change, judged))) return [];
    if (!isForward && !touching.some((commit) => changeIn(commit.changes, change.path) !== null)) return [];
    const tip = makers.at(-1) ?? { oid: to };
    return [
      {
        ...aboutCommit(tip, change.path),
        code: "E_LEASE_REQUIRED" as const,
        message: `${shortOf(tip)}: replaces what the branch has of issue ${id}, without a claim`,
        hint: `keep the branch's side of it, or claim the issue and commit it again: cotenant claim acquire ${id}`,
      },
    ];
  });
}

function isAccounted(
  question: Pick<PushQuestion, "witness">,
  commit: PushedCommit,
  id: string,
  { path }: PathChange,
  judged: ReadonlySet<ObjectId>,
): boolean {
  const edit = commit.edits.find(({ issueId }) => issueId === id);
  // Only what adds an issue, or a comment, was nobody's business when it came in.
  if (!judged.has(commit.oid) && changeIn(commit.changes, path)?.status !== "added") return true;
  if (edit === undefined) return false;
  const right = rightTo(question, commit, { ...edit, isCreation: false });
  return typeof right === "string" && right !== "created";
}

function changeIn(changes: readonly OwnChange[], path: string): OwnChange | null {
  return changes.find((change) => change.path === path) ?? null;
}
