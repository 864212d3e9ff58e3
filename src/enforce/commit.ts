import type { LeaseStatus } from "../coordinator/contract";
import type { Workspace } from "../coordinator/workspace";
import { CotenantError } from "../errors/cotenant-error";
import { gitPath } from "../identity/paths";
import { decodeIssue, type Issue } from "../issues/model";
import { RESULTS, stampFromFact, stampName, type WrittenStamp } from "../issues/stamps";
import type { Ulid } from "../kernel/ids";
import { fileKey, issueKey, type LeaseKey, scopeKey } from "../kernel/keys";
import { isRefusal } from "../kernel/refusal";
import type { GitOptions } from "../platform/git";
import { blobs, committedChanges, type PathChange, stagedChanges } from "./changes";
import {
  type CommitQuestion,
  type Committer,
  type IssueEdit,
  issueOf,
  judgeCommit,
  type Objection,
  scopeOf,
} from "./commit-rules";
import { diverged, mainHistory } from "./divergence";

/** What speaks against a commit, and what it is about. */
export interface Judgement {
  readonly changes: readonly PathChange[];
  readonly issues: readonly (IssueEdit & { readonly issue: Issue | null })[];
  readonly objections: readonly Objection[];
  readonly committer: Committer | null;
  /** The committer holds leases on some of it. */
  readonly isHeld: boolean;
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
  const { git, env, platform } = surroundings;
  const index = env["GIT_INDEX_FILE"];
  const place: Place = {
    cwd: repository.worktreeRoot,
    ...(index === undefined ? {} : { env: { GIT_INDEX_FILE: index } }),
  };
  let changes = given ?? (await stagedChanges(git, place, "HEAD"));
  const isMerge = (await platform.files.stat(`${repository.gitDir}/MERGE_HEAD`)) !== null;
  if (isMerge) changes = await inNoParent(workspace, place, changes);
  return judge(workspace, place, changes, isMerge);
}

/** What was committed last. Null for a merge: what it brings was somebody else's commit. */
export async function judgeHead(workspace: Workspace): Promise<Judgement | null> {
  const { repository, surroundings } = workspace;
  const place = { cwd: repository.worktreeRoot };
  const { stdout } = await surroundings.git.run(["rev-list", "--parents", "-n", "1", "HEAD", "--"], place);
  if (new TextDecoder().decode(stdout).trim().split(" ").length > 2) return null;
  return judge(workspace, place, await committedChanges(surroundings.git, place, "HEAD"), false);
}

type Place = Pick<GitOptions, "cwd" | "env">;

async function judge(
  workspace: Workspace,
  place: Place,
  changes: readonly PathChange[],
  isMerge: boolean,
): Promise<Judgement> {
  const worktreeId = (await workspace.worktree("read")).identity.worktreeId;
  const committer = await committerOf(workspace, worktreeId);
  if (changes.length === 0) return { changes, issues: [], objections: [], committer, isHeld: false };
  const keyed = changes.map((change) => ({ ...change, key: keyOf(workspace, change.path) }));
  const read = (oids: readonly string[]) => blobs(workspace.surroundings.git, place, oids);
  const issues = await issueEdits(workspace, read, changes, committer, isMerge);
  const found = await leasesFor(workspace, keyed, issues, worktreeId);
  const leases = found
    .filter(({ standing, stale }) => standing === "valid" && !stale)
    .map(({ lease }) => lease);
  const question: CommitQuestion = { changes: keyed, issues, committer, worktreeId, leases };
  const objections = [...judgeCommit(question), ...(await historyObjections(workspace, changes))];
  // Also by a subagent of the committer's session, or by the committer under another harness's name.
  const isHeld =
    committer !== null &&
    leases.some(
      ({ agentId, sessionId }) => agentId === committer.agentId || sessionId === committer.sessionId,
    );
  return { changes, issues, objections, committer, isHeld };
}

async function committerOf(
  workspace: Workspace,
  worktreeId: Committer["worktreeId"],
): Promise<Committer | null> {
  try {
    const { agentId, sessionId } = await workspace.agent();
    return { agentId, sessionId, worktreeId };
  } catch (error) {
    if (error instanceof CotenantError && error.code === "E_AGENT_ID_REQUIRED") return null;
    throw error;
  }
}

/** Of a merge in progress: only what is in neither parent is this commit's own. */
async function inNoParent(
  workspace: Workspace,
  place: Place,
  changes: readonly PathChange[],
): Promise<PathChange[]> {
  const other = await commitAt(workspace, "MERGE_HEAD");
  if (other === null) return [...changes];
  const fromOther = new Set(
    (await stagedChanges(workspace.surroundings.git, place, other)).map(({ path }) => path),
  );
  return changes.filter(({ path }) => fromOther.has(path));
}

async function commitAt({ surroundings, repository }: Workspace, name: string): Promise<string | null> {
  const { status, stdout } = await surroundings.git.run(
    ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`],
    { cwd: repository.worktreeRoot },
  );
  return status === 0 ? new TextDecoder().decode(stdout).trim() : null;
}

/** What a lease on the path would be called; null for what cannot be leased. */
export function keyOf({ repository }: Workspace, path: string): LeaseKey | null {
  const canonical = gitPath(repository, path);
  const key = isRefusal(canonical) ? canonical : fileKey(canonical);
  return isRefusal(key) ? null : key;
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
  for (const change of changes) {
    const id = issueOf(change.path);
    if (id === null) continue;
    const known = byId.get(id);
    if (known === undefined) byId.set(id, [change]);
    else known.push(change);
  }
  if (byId.size === 0) return [];
  const { platform } = workspace.surroundings;
  const files = [...byId.values()]
    .flat()
    .filter(({ path, oid }) => oid !== null && path.endsWith("/issue.json"));
  const texts = await read(files.map(({ oid }) => oid!));
  const facts = await workspace.coordinator.facts({ names: [...byId.keys()].map(stampName) });
  return [...byId].map(([id, edits]) => {
    const file = edits.find(({ path }) => path.endsWith("/issue.json"));
    const text = file?.oid == null ? null : (texts.get(file.oid) ?? null);
    const reading = text === null ? null : decodeIssue(text);
    const issue = reading !== null && "issue" in reading && reading.issue.id === id ? reading.issue : null;
    const fact = facts.get(stampName(id));
    const stamp = fact === undefined ? null : stampFromFact(fact.value);
    const isWritten = text !== null && isBy(stamp, committer, platform.digest.sha256(text));
    return {
      id,
      issue,
      paths: edits.map(({ path }) => path),
      isNew: file?.status === "added" && issue?.stamp.version === 1,
      isWritten,
      isGateWord: isWritten && stamp?.additions.some(({ file: name }) => name === RESULTS) === true,
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
  changes: readonly { readonly path: string; readonly key: LeaseKey | null }[],
  issues: readonly IssueEdit[],
  worktreeId: Committer["worktreeId"],
): Promise<LeaseStatus[]> {
  const extents = changes.flatMap(({ key }) =>
    key === null ? [] : [{ key, reach: "worktree", worktreeId } as const],
  );
  const named = [
    ...issues.map(({ id }) => issueKey(id)),
    ...changes.flatMap(({ path }) => {
      const scope = scopeOf(path);
      return scope === null ? [] : [scopeKey(scope)];
    }),
  ].filter((key) => !isRefusal(key)) as LeaseKey[];
  const refs = [...new Set(named)].map((key) => ({ key, leaseId: null }));
  return [
    ...(await coordinator.overlapping(extents)),
    ...(refs.length === 0 ? [] : await coordinator.find(refs)),
  ];
}

/** What concerns everybody is changed on top of the main branch's history. */
async function historyObjections(workspace: Workspace, changes: readonly PathChange[]): Promise<Objection[]> {
  const concerned = changes.find(({ path }) => scopeOf(path) !== null);
  const { config, surroundings, repository } = workspace;
  if (concerned === undefined || !config.values["global_operations.require_main_history"]) return [];
  const configured = config.values["global_operations.main_branch"];
  const history = await mainHistory(surroundings.git, repository.worktreeRoot, configured);
  if (history.kind !== "lacks") return [];
  const { message, hint } = diverged(history);
  return [
    {
      code: "E_DIVERGED",
      path: concerned.path,
      message: `${concerned.path}: ${message}`,
      hint,
      owner: null,
      leaseId: null,
    },
  ];
}
