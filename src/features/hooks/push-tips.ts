import type { PathChange } from "../../git/commit-text";
import type { ChangingCommit } from "../../git/commits";
import type { ObjectId } from "../../git/object-name";
import { isOrContains } from "../issues/lineage";
import type { Issue } from "../issues/model";
import { blobs } from "./changes";
import { isPlain, issueOf, structuralChanges } from "./commit-rules";
import { OriginFinder, type Origins } from "./content-origins";
import { type EditSources, issueIn, withEdits } from "./push-edits";
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

/** Whose leases, or which rules, keep files from being taken back to an earlier state. */
export interface PathKeeper {
  /** Whether there may be any such file. */
  readonly isAnyHeld: boolean;
  isHeld(path: string): boolean;
  /** `commit` has it as it was; `merges` dropped what the branch had. */
  takenBack(commit: ChangingCommit, path: string, merges: readonly ChangingCommit[]): PushObjection[];
}

export interface TipCourt {
  readonly sources: EditSources;
  /** What can be said of commits since then; null where nothing is known of any lease. */
  readonly testify: ((sinceMs: number) => Promise<Witness>) | null;
  /** Who keeps files from being changed by just anybody. */
  readonly keepers: readonly PathKeeper[];
  /** The main branch there, before the push. */
  readonly main: ObjectId | null;
  /** Commits that are looked at each by itself. The others came in earlier, and were looked at then. */
  readonly judged: ReadonlySet<ObjectId>;
}

const ISSUES = [".cotenant/issues", ".cotenant/gates/results"];

/**
 * What a branch has in the end must be somebody's change too. Commits that are right each by itself can add up to another
 * one: an issue that is "created" anew where it was not, and brought in by a merge; or a merge that drops what the branch
 * had.
 */
export async function tipObjections(court: TipCourt, { ref, from, to }: TipMove): Promise<PushObjection[]> {
  // Other refs are nobody's working state: a tag is judged by its commits.
  if (!ref.startsWith("refs/heads/")) return [];
  const { reader } = court.sources;
  // A branch that is new, or does not have an issue yet, is held against the main branch that it comes from.
  const bases = court.main === null ? [] : await reader.mergeBases(court.main, to);
  const objections = new Map<string, PushObjection>();
  for (const base of new Set([from, ...bases])) {
    if (base === null || base === to) continue;
    for (const objection of await objectionsSince(court, base, to)) objections.set(objection.path, objection);
  }
  if (objections.size === 0 || from === null) return [...objections.values()];
  // What the branch has had is not what this push makes of it.
  const changed = new Set((await reader.difference(from, to)).map(({ path }) => path));
  return [...objections.values()].filter(({ path }) => changed.has(path));
}

async function objectionsSince(court: TipCourt, from: ObjectId, to: ObjectId): Promise<PushObjection[]> {
  const { sources, keepers, testify } = court;
  const { reader, git, place } = sources;
  const changes = await reader.difference(from, to, keepers.some(({ isAnyHeld }) => isAnyHeld) ? [] : ISSUES);
  const read = (oids: readonly string[]) => blobs(git, place, oids);
  const structural = testify === null ? [] : await structuralChanges(changes, read);
  const added = new Set(
    structural.filter(({ change }) => isIssueFile(change) && change.before === null).map(({ id }) => id),
  );
  // What is added whole was created by a commit that was looked at.
  const concerned = structural.filter(({ id }) => !added.has(id));
  const held = changes.filter(({ path }) => keepers.some((keeper) => keeper.isHeld(path)));
  if (concerned.length === 0 && held.length === 0) return [];
  const between = await reader.changing({ names: [to, `^${from}`], options: [] });
  const paths = new Set([...concerned.map(({ change }) => change.path), ...held.map(({ path }) => path)]);
  const origins = new OriginFinder(between, paths);
  // A branch that is set back changes nothing: what it loses was somebody's, and still is in their history.
  const isForward = await reader.isAncestor(from, to);
  const onTop = descendantsOf(from, between);
  const takenBack = isForward
    ? held.flatMap(({ path }) => takenBackBy(keepers, origins.of(to, path), path, onTop))
    : [];
  if (concerned.length === 0 || testify === null) return takenBack;
  const touching = await withEdits(
    sources,
    between.filter(({ changes: own }) => own.some(({ path }) => paths.has(path))),
  );
  const there = await issuesAt(sources, from, new Set(concerned.map(({ id }) => id)));
  const accounts = new Accounts({
    question: { witness: await testify(oldest(touching)) },
    sha256: (text) => sources.digest.sha256(text),
    judged: court.judged,
    commits: new Map(touching.map((commit) => [commit.oid, commit])),
    origins,
    onTop,
    isForward,
  });
  const unaccounted = concerned.flatMap(({ id, change }): PushObjection[] => {
    if (accounts.isAccounted(to, id, change, there.get(id) ?? null)) return [];
    const { own } = origins.of(to, change.path);
    const tip = own.at(-1) ?? { oid: to };
    return [
      {
        ...aboutCommit(tip, change.path),
        code: "E_LEASE_REQUIRED" as const,
        message: `${shortOf(tip)}: replaces what the branch has of issue ${id}, without a claim`,
        hint: `keep the branch's side of it, or claim the issue and change it in a commit on top: cotenant claim acquire ${id}`,
      },
    ];
  });
  return [...takenBack, ...unaccounted];
}

/** Among commits of which parents come before children. */
function descendantsOf(ancestor: ObjectId, commits: readonly ChangingCommit[]): ReadonlySet<ObjectId> {
  const found = new Set([ancestor]);
  for (const { oid, parents } of commits) if (parents.some((parent) => found.has(parent))) found.add(oid);
  return found;
}

/** Those that can be read, as a commit has them. */
async function issuesAt(
  { reader, git, place }: EditSources,
  commit: ObjectId,
  ids: ReadonlySet<string>,
): Promise<ReadonlyMap<string, Issue>> {
  const paths = [...ids].map((id) => `.cotenant/issues/${id}/issue.json`);
  const files = (await reader.difference(null, commit, paths)).filter(isPlain);
  const texts = await blobs(
    git,
    place,
    files.flatMap(({ oid }) => oid ?? []),
  );
  const issues = files.map(({ path, oid }) => issueIn(texts.get(oid ?? "") ?? null, issueOf(path) ?? ""));
  return new Map(issues.flatMap((issue) => (issue === null ? [] : [[issue.id, issue]])));
}

function isIssueFile({ path }: PathChange): boolean {
  return path.endsWith("/issue.json");
}

/** Nobody's own change, but a merge that keeps an older state of a file. */
function takenBackBy(
  keepers: readonly PathKeeper[],
  { own, edges, choices }: Origins,
  path: string,
  onTop: ReadonlySet<ObjectId>,
): PushObjection[] {
  if (own.length > 0) return [];
  const merges = choices
    .filter(({ dropped }) => dropped.some((oid) => onTop.has(oid)))
    .map(({ merge }) => merge);
  return edges
    .slice(0, 1)
    .flatMap((commit) => keepers.flatMap((keeper) => keeper.takenBack(commit, path, merges)));
}

interface Evidence {
  readonly question: Pick<PushQuestion, "witness">;
  readonly sha256: (text: string) => string;
  readonly judged: ReadonlySet<ObjectId>;
  /** Those that change one of the issues. */
  readonly commits: ReadonlyMap<ObjectId, PushedCommit>;
  readonly origins: OriginFinder;
  /** Those that have what the branch has among their ancestors. */
  readonly onTop: ReadonlySet<ObjectId>;
  readonly isForward: boolean;
}

class Accounts {
  readonly #evidence: Evidence;
  readonly #known = new Map<string, boolean>();

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  /** Whether somebody had the right to make this of an issue. `there` is what the branch has of it. */
  isAccounted(to: ObjectId, id: string, { path }: PathChange, there: Issue | null): boolean {
    const { origins, isForward } = this.#evidence;
    const { own, edges } = origins.of(to, path);
    if (!isForward && (edges.length > 0 || own.length === 0)) return true;
    return own.some(({ oid }) => this.#isRight(oid, id, path, there, !isForward));
  }

  #isRight(oid: ObjectId, id: string, path: string, there: Issue | null, mayBeOlder: boolean): boolean {
    const { commits, judged, question, sha256, onTop } = this.#evidence;
    const commit = commits.get(oid);
    const edit = commit?.edits.find(({ issueId, paths }) => issueId === id && paths.includes(path));
    // Who only adds a comment has not taken out the others.
    if (commit === undefined || edit === undefined) return false;
    const right = rightTo(question, commit, edit);
    // An issue that is there is not created again, unless this is how it began.
    if (right === "created")
      return there !== null && edit.issue !== null && isOrContains(there, edit.issue, sha256);
    if (right === "merged")
      return commit.parents.every((parent) => this.#isSideRight(parent, id, path, there));
    // Whoever commits an older version on top of what the branch has means it; who made it beside that has not seen what is
    // there, and no merge may drop it.
    const isOlder = edit.issue !== null && there !== null && edit.issue.stamp.version < there.stamp.version;
    if (isOlder && !mayBeOlder && !onTop.has(oid)) return false;
    // Only what adds an issue, or a comment, was nobody's business when it came in.
    const isAdded = commit.changes.some((change) => change.path === path && change.status === "added");
    return typeof right === "string" || (!judged.has(oid) && !isAdded);
  }

  /** A side of a merge: the branch's own, or what somebody made of it since. */
  #isSideRight(parent: ObjectId, id: string, path: string, there: Issue | null): boolean {
    const key = `${parent} ${path}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const { origins } = this.#evidence;
    const isRight =
      !origins.has(parent) ||
      origins.of(parent, path).own.some(({ oid }) => this.#isRight(oid, id, path, there, true));
    this.#known.set(key, isRight);
    return isRight;
  }
}
