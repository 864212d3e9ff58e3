import type { OwnChange } from "../../git/commit-text";
import type { ChangingCommit, CommitReader } from "../../git/commits";
import type { Git, GitPlace } from "../../platform/git";
import type { Digest } from "../../platform/platform";
import { mergeIssueFiles } from "../issues/merge/files";
import { decodeIssue, type Issue } from "../issues/model";
import { blobs } from "./changes";
import { commentsOf, isPlain, issueOf, keepsLines, structuralChanges } from "./commit-rules";
import type { PushedCommit, PushedEdit } from "./push-rules";
import { parseTrailers } from "./trailers";

export interface EditSources {
  readonly git: Git;
  readonly place: GitPlace;
  readonly reader: CommitReader;
  readonly digest: Digest;
}

type Texts = (oids: readonly string[]) => Promise<ReadonlyMap<string, string>>;

/** What the commits say of themselves, and what they do to issues. */
export async function withEdits(
  sources: EditSources,
  commits: readonly ChangingCommit[],
): Promise<PushedCommit[]> {
  const read = await textsOf(sources, commits);
  const found: PushedCommit[] = [];
  for (const commit of commits) {
    const structural = await structuralChanges(commit.changes, read);
    const byId = new Map<string, OwnChange[]>();
    for (const { id, change } of structural) byId.set(id, [...(byId.get(id) ?? []), change]);
    const edits: PushedEdit[] = [];
    for (const [id, changes] of byId) edits.push(await editOf(sources, read, commit, id, changes));
    found.push({ ...commit, trailers: parseTrailers(commit.message), edits });
  }
  return found;
}

/** All of them at once: one Git for each would take a second for a hundred. */
async function textsOf({ git, place }: EditSources, commits: readonly ChangingCommit[]): Promise<Texts> {
  const known = new Map<string, string>();
  const read: Texts = async (oids) => {
    const missing = oids.filter((oid) => !known.has(oid));
    for (const [oid, text] of await blobs(git, place, missing)) known.set(oid, text);
    return new Map(oids.map((oid) => [oid, known.get(oid)!]));
  };
  const files = commits.flatMap(({ changes }) =>
    changes.filter(
      (change) => (issueOf(change.path) !== null || commentsOf(change.path) !== null) && isPlain(change),
    ),
  );
  await read(
    [...new Set(files.flatMap(({ oid, befores }) => [oid, ...befores]))].filter((oid) => oid !== null),
  );
  return read;
}

async function editOf(
  sources: EditSources,
  read: Texts,
  commit: ChangingCommit,
  issueId: string,
  changes: readonly OwnChange[],
): Promise<PushedEdit> {
  const paths = changes.map(({ path }) => path);
  if (!changes.every(isPlain))
    return { issueId, paths, issue: null, isCreation: false, digest: null, isMerged: false };
  const file = changes.find(({ path }) => path.endsWith("/issue.json"));
  const text = file?.oid == null ? null : ((await read([file.oid])).get(file.oid) ?? null);
  const issue = issueIn(text, issueId);
  const losesComments = changes.some(({ path }) => commentsOf(path) !== null);
  const befores = file === undefined ? [] : file.befores.filter((oid) => oid !== null);
  const earlier = [...(await read(befores)).values()].map((one) => issueIn(one, issueId));
  // What was written goes on from what is there: an earlier version of it was written too.
  const isNewer = earlier.every((one) => (one?.stamp.version ?? -1) < (issue?.stamp.version ?? 0));
  return {
    issueId,
    paths,
    issue,
    isCreation: file?.status === "added" && issue?.stamp.version === 1 && !losesComments,
    digest: text === null || losesComments || !isNewer ? null : sources.digest.sha256(text),
    isMerged: commit.parents.length === 2 && (await isMerge(sources, read, commit, changes)),
  };
}

/** Null where it cannot be read, or is another issue. */
export function issueIn(text: string | null, id: string): Issue | null {
  const reading = text === null ? null : decodeIssue(text);
  return reading !== null && "issue" in reading && reading.issue.id === id ? reading.issue : null;
}

/** Whether a merge has made of these files what our own merge of the two sides makes of them. */
async function isMerge(
  { reader, digest }: EditSources,
  read: Texts,
  commit: ChangingCommit,
  changes: readonly OwnChange[],
): Promise<boolean> {
  const [left, right] = commit.parents as [string, string];
  const bases = await reader.mergeBases(left, right);
  // Of several, Git makes a base of its own: then a person's claim has to stand behind it.
  if (bases.length > 1) return false;
  const [base = null] = bases;
  const sinceBase = base === null ? [] : await reader.difference(base, commit.oid);
  for (const { path, oid, befores } of changes) {
    const [one, other] = befores;
    if (oid === null || one == null || other == null) return false;
    const since = sinceBase.find((change) => change.path === path);
    const atBase = base === null ? null : since === undefined ? oid : since.before;
    const texts = await read([oid, one, other, ...(atBase === null ? [] : [atBase])]);
    const [merged, mine, theirs] = [texts.get(oid)!, texts.get(one)!, texts.get(other)!];
    if (!path.endsWith("/issue.json")) {
      const isUnion = keepsLines(`${mine}\n${theirs}`, merged) && keepsLines(merged, `${mine}\n${theirs}`);
      if (!isUnion) return false;
      continue;
    }
    const common = atBase === null ? null : texts.get(atBase)!;
    const result = mergeIssueFiles(common, mine, theirs, MARKS, (text) => digest.sha256(text));
    if (!("text" in result) || result.conflicts.length > 0 || result.text !== merged) return false;
  }
  return true;
}

const MARKS = { left: "ours", right: "theirs", size: 7 };
