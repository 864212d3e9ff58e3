import type { LeaseStatus } from "../../coordinator/contract";
import type { Workspace } from "../../coordinator/workspace";
import { ownChanges, type PathChange } from "../../git/commit-text";
import { type ChangingCommit, CommitReader } from "../../git/commits";
import { currentBranch } from "../../identity/branch";
import { rulingKey } from "../../identity/path-keys";
import { byKey } from "../../kernel/commands";
import type { Ulid } from "../../kernel/ids";
import { isPathKey, issueKey, type LeaseKey, scopeKey } from "../../kernel/keys";
import type { Lease } from "../../kernel/lease";
import { isRefusal } from "../../kernel/refusal";
import type { GitPlace } from "../../platform/git";
import { decodeIssue, type Issue } from "../issues/model";
import { isGateWord, stampFromFact, stampName, type WrittenStamp } from "../issues/stamps";
import { blobs, stagedChanges } from "./changes";
import { committerOf, isMerging } from "./commit-message";
import {
  type CommitQuestion,
  type Committer,
  commentsOf,
  type IssueEdit,
  isPlain,
  judgeCommit,
  mayCommit,
  type Objection,
  scopeOf,
  structuralChanges,
} from "./commit-rules";
import { globalRefusal } from "./global-operations";
import { type Replacing, ruleObjections, rulesHere, withReplaced } from "./path-rules";
import { shortOf } from "./push-rules";
import { type Replay, replayAt } from "./replay";
import { spellingObjections } from "./spelling";

/** What speaks against a commit, and what it is about. */
export interface Judgement {
  readonly changes: readonly PathChange[];
  readonly issues: readonly (IssueEdit & { readonly issue: Issue | null })[];
  readonly objections: readonly Objection[];
  readonly committer: Committer | null;
  /** The committer holds leases on some of it. */
  readonly isHeld: boolean;
  /** Leases of files and directories that it rests on: the committer's, and those of its subagents. */
  readonly leases: readonly Lease[];
  /** There are rules of paths, so that whoever judges the commit later has to know whose it is. */
  readonly isRuled: boolean;
}

/**
 * The index, as `git commit` is about to take it. Git names it where it is not the usual one. `given` is what Git has been
 * asked already.
 */
export async function judgeStaged(
  workspace: Workspace,
  given: readonly PathChange[] | null = null,
): Promise<Judgement> {
  const { repository, surroundings } = workspace;
  const { git, env } = surroundings;
  const index = env["GIT_INDEX_FILE"];
  const place: GitPlace = {
    cwd: repository.worktreeRoot,
    ...(index === undefined ? {} : { env: { GIT_INDEX_FILE: index } }),
  };
  let changes = given ?? (await stagedChanges(git, place, "HEAD"));
  const isMerge = await isMerging(workspace);
  if (isMerge) changes = await inNoParent(workspace, place, changes);
  const parents = isMerge ? ["HEAD", "MERGE_HEAD"] : ["HEAD"];
  return without(await replayAt(workspace), null, await judge(workspace, place, { changes, parents }));
}

/**
 * What was committed last. Of a merge only what is its own, and of a commit that was made anew only what it changes more:
 * the rest was somebody's commit, and judged then.
 */
export async function judgeHead(workspace: Workspace): Promise<Judgement & { readonly commit: string }> {
  const { repository, surroundings } = workspace;
  const place = { cwd: repository.worktreeRoot };
  const reader = new CommitReader(surroundings.git, place);
  const [head] = (await reader.changing({ names: ["HEAD"], options: ["--no-walk"] })) as [ChangingCommit];
  const parents = head.parents.map((oid) => shortOf({ oid }));
  const judgement = await judge(workspace, place, { changes: head.changes, parents });
  return { ...without(await replayAt(workspace), head.authoredAtMs, judgement), commit: head.oid };
}

function without(isReplayed: Replay, authoredAtMs: number | null, judgement: Judgement): Judgement {
  const { changes, objections } = judgement;
  const replayed = new Set(
    changes.filter((change) => isReplayed(change, authoredAtMs)).map(({ path }) => path),
  );
  return { ...judgement, objections: objections.filter(({ path }) => !replayed.has(path)) };
}

async function judge(workspace: Workspace, place: GitPlace, commit: Replacing): Promise<Judgement> {
  const { changes, parents } = commit;
  const worktreeId = (await workspace.worktree("read")).identity.worktreeId;
  const committer = await committerOf(workspace);
  const { git } = workspace.surroundings;
  const rules = await withReplaced(rulesHere(workspace), { git, place }, commit);
  const isRuled = rules.rules.length > 0;
  if (changes.length === 0)
    return { changes, issues: [], objections: [], committer, isHeld: false, leases: [], isRuled };
  const keyed = changes.map((change) => ({ ...change, key: rulingKey(workspace, change.path) }));
  const read = (oids: readonly string[]) => blobs(git, place, oids);
  const issues = await issueEdits(workspace, read, changes, committer, parents.length > 1);
  const found = await leasesFor(workspace, keyed, issues, worktreeId);
  const leases = found
    .filter(({ standing, stale }) => standing === "valid" && !stale)
    .map(({ lease }) => lease);
  const question: CommitQuestion = { changes: keyed, issues, committer, worktreeId, leases };
  const objections = [
    ...judgeCommit(question),
    ...spellingObjections(changes),
    ...ruleObjections(rules, committer, changes),
    ...(await globalObjections(workspace, changes)),
  ];
  // Also by a subagent of the committer's session, or by the committer under another harness's name.
  const isHeld =
    committer !== null &&
    leases.some(
      ({ agentId, sessionId }) => agentId === committer.agentId || sessionId === committer.sessionId,
    );
  const own = leases.filter((lease) => isPathKey(lease.key) && mayCommit(lease, committer));
  return { changes, issues, objections, committer, isHeld, leases: own, isRuled };
}

/** Of a merge in progress: only what is in neither parent is this commit's own. */
async function inNoParent(
  workspace: Workspace,
  place: GitPlace,
  changes: readonly PathChange[],
): Promise<readonly PathChange[]> {
  const other = await commitAt(workspace, "MERGE_HEAD");
  if (other === null) return changes;
  return ownChanges([changes, await stagedChanges(workspace.surroundings.git, place, other)]);
}

async function commitAt({ surroundings, repository }: Workspace, name: string): Promise<string | null> {
  const { status, stdout } = await surroundings.git.run(
    ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`],
    { cwd: repository.worktreeRoot },
  );
  return status === 0 ? new TextDecoder().decode(stdout).trim() : null;
}

/** Which issues the changes are of, and on what each change rests. `read` knows what is in new objects. */
export async function issueEdits(
  workspace: Workspace,
  read: (oids: readonly string[]) => Promise<ReadonlyMap<string, string>>,
  changes: readonly PathChange[],
  committer: Committer | null,
  isMerge: boolean,
): Promise<(IssueEdit & { issue: Issue | null })[]> {
  const byId = new Map<Ulid, PathChange[]>();
  for (const { id, change } of await structuralChanges(changes, read)) {
    const known = byId.get(id);
    if (known === undefined) byId.set(id, [change]);
    else known.push(change);
  }
  if (byId.size === 0) return [];
  const { platform } = workspace.surroundings;
  const files = [...byId.values()]
    .flat()
    .filter((change) => change.oid !== null && change.path.endsWith("/issue.json") && isPlain(change));
  const texts = await read(files.map(({ oid }) => oid!));
  const facts = await workspace.coordinator.facts({ names: [...byId.keys()].map(stampName) });
  return [...byId].map(([id, edits]) => {
    const file = edits.find(({ path }) => path.endsWith("/issue.json"));
    const text = file?.oid == null || !edits.every(isPlain) ? null : (texts.get(file.oid) ?? null);
    const reading = text === null ? null : decodeIssue(text);
    const issue = reading !== null && "issue" in reading && reading.issue.id === id ? reading.issue : null;
    const fact = facts.get(stampName(id));
    const stamp = fact === undefined ? null : stampFromFact(fact.value);
    // What cotenant wrote rewrites no comments.
    const isWritten =
      text !== null &&
      !edits.some(({ path }) => commentsOf(path) !== null) &&
      isBy(stamp, committer, platform.digest.sha256(text));
    return {
      id,
      issue,
      paths: edits.map(({ path }) => path),
      isNew: file?.status === "added" && issue?.stamp.version === 1,
      isWritten,
      isGateWord: isWritten && stamp !== null && isGateWord(stamp.additions),
      isMerged: isMerge && issue?.stamp.origin === "merge" && issue.stamp.lease_id === null,
    };
  });
}

/** Proved when it was written, and unchanged since. */
function isBy(stamp: WrittenStamp | null, committer: Committer | null, digest: string): boolean {
  return (
    stamp !== null &&
    committer !== null &&
    stamp.digest === digest &&
    stamp.agentId === committer.agentId &&
    stamp.worktreeId === committer.worktreeId
  );
}

async function leasesFor(
  { coordinator }: Workspace,
  changes: readonly { readonly path: string; readonly key: LeaseKey }[],
  issues: readonly IssueEdit[],
  worktreeId: Committer["worktreeId"],
): Promise<LeaseStatus[]> {
  const extents = changes.map(({ key }) => ({ key, reach: "worktree", worktreeId }) as const);
  const named = [
    ...issues.map(({ id }) => issueKey(id)),
    ...changes.flatMap(({ path }) => {
      const scope = scopeOf(path);
      return scope === null ? [] : [scopeKey(scope)];
    }),
  ];
  const refs = [...new Set(named)].flatMap((key) => (isRefusal(key) ? [] : [byKey(key)]));
  return [
    ...(await coordinator.overlapping(extents)),
    ...(refs.length === 0 ? [] : await coordinator.find(refs)),
  ];
}

/** What concerns everybody is changed on branches that may, on top of the main branch's history. */
async function globalObjections(workspace: Workspace, changes: readonly PathChange[]): Promise<Objection[]> {
  const paths = changes.map(({ path }) => path).filter((path) => scopeOf(path) !== null);
  const { config, surroundings, repository } = workspace;
  const { git, platform } = surroundings;
  if (paths.length === 0) return [];
  const refusal = await globalRefusal({
    git,
    cwd: repository.worktreeRoot,
    config,
    command: "git commit",
    branch: await currentBranch(platform, git, repository.gitDir),
    paths,
  });
  if (refusal === null) return [];
  const { code, message, hint } = refusal;
  return [{ code, path: paths[0]!, message: `${paths[0]}: ${message}`, hint, owner: null, leaseId: null }];
}
