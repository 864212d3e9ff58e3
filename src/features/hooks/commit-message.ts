import type { Workspace } from "../../coordinator/workspace";
import { CommitReader } from "../../git/commits";
import { committedChanges } from "./changes";
import type { Judgement } from "./commit";
import { type Committer, isOf, issueOf } from "./commit-rules";
import { commitOf } from "./divergence";
import { carried, parseTrailers, type Trailer, type Trailers, trailerLines } from "./trailers";

/** The message that a commit is about to get. */
export interface CommitMessage {
  readonly text: string;
  /** It takes the place of HEAD, whose message is not in the text. */
  readonly isAmending: boolean;
}

/** The lines that a message needs, to say on which leases its commit and all that it is made of rest. */
export async function messageTrailers(
  workspace: Workspace,
  given: Trailers,
  { text, isAmending }: CommitMessage,
): Promise<string[]> {
  const others = await otherMessages(workspace, isAmending);
  const earlier = parseTrailers([...others, text].join("\n"));
  // Whoever makes a commit anew answers for it, as a server's rules want it which this clone does not know.
  const committer = given.agentId === null && earlier.agentId !== null ? await committerOf(workspace) : null;
  const fresh = committer === null ? given : { ...given, ...who(committer) };
  // Somebody is named without any lease where rules ask who committed.
  if (earlier.issues.length === 0 && earlier.leases.length === 0)
    return trailerLines(fresh, fresh.agentId !== null);
  const ids = new Set(fresh.issues.map(({ issueId }) => issueId));
  if (earlier.issues.some(({ issueId }) => !ids.has(issueId)))
    for (const id of await issuesOfHead(workspace)) ids.add(id);
  return trailerLines(carried(earlier, fresh, (id) => ids.has(id)));
}

/** Whether a commit that is made now is made of others, whose messages may not be in its own. */
export async function isMadeOfOthers({ repository, surroundings }: Workspace): Promise<boolean> {
  for (const name of [SQUASHED, ...REPLAYED])
    if ((await surroundings.platform.files.stat(`${repository.gitDir}/${name}`)) !== null) return true;
  return false;
}

/** What `git merge --squash` leaves for the next commit. */
const SQUASHED = "SQUASH_MSG";
/** The commit that is being made anew. */
const REPLAYED = ["CHERRY_PICK_HEAD", "REBASE_HEAD"] as const;

async function otherMessages(workspace: Workspace, isAmending: boolean): Promise<string[]> {
  const { repository, surroundings } = workspace;
  const { git, platform } = surroundings;
  const cwd = repository.worktreeRoot;
  const squashed = await platform.files.readFile(`${repository.gitDir}/${SQUASHED}`);
  const names = isAmending ? ["HEAD", ...REPLAYED] : REPLAYED;
  const oids = (await Promise.all(names.map((name) => commitOf(git, cwd, name)))).filter(
    (oid) => oid !== null,
  );
  const commits = await new CommitReader(git, { cwd }).read([...new Set(oids)]);
  return [
    ...commits.map(({ message }) => message),
    ...(squashed === null ? [] : [new TextDecoder().decode(squashed)]),
  ];
}

async function issuesOfHead({ surroundings, repository }: Workspace): Promise<string[]> {
  const place = { cwd: repository.worktreeRoot };
  if ((await commitOf(surroundings.git, place.cwd, "HEAD")) === null) return [];
  const changes = await committedChanges(surroundings.git, place, "HEAD");
  return changes.flatMap(({ path }) => issueOf(path) ?? []);
}

/** On which leases what is staged rests, as far as it is the committer's own. */
export async function freshTrailers(
  workspace: Workspace,
  { issues, committer, leases }: Pick<Judgement, "issues" | "committer" | "leases">,
): Promise<Trailers> {
  // The guard's end with the commit, and nobody could hold them still.
  const files = leases
    .filter(({ reach }) => reach === "repository")
    .map(({ leaseId, fencingToken }) => ({ leaseId, token: fencingToken }));
  const claims =
    issues.length === 0 || committer === null
      ? []
      : (await workspace.coordinator.list({ kinds: ["issue"] })).filter(
          ({ lease, standing }) => standing === "valid" && isOf(lease, committer),
        );
  const trailers = issues.flatMap(({ id, issue, isWritten, isMerged }): Trailer[] => {
    // The claim that the content was written under, where it was by the committer; else their own that stands.
    const { lease_id: leaseId = null, fencing_token: token = null } = issue?.stamp ?? {};
    if (isWritten && leaseId !== null) return [{ issueId: id, leaseId, token }];
    const own = claims.find(({ lease }) => lease.key === `issue:${id}`)?.lease;
    if (own !== undefined) return [{ issueId: id, leaseId: own.leaseId, token: own.fencingToken }];
    // What both sides of a merge come to rests on nobody's claim.
    return isMerged ? [] : [{ issueId: id, leaseId: null, token: null }];
  });
  return { ...who(committer), issues: trailers, leases: files };
}

function who(committer: Committer | null): Pick<Trailers, "agentId" | "worktreeId"> {
  return { agentId: committer?.agentId ?? null, worktreeId: committer?.worktreeId ?? null };
}

/** Null for somebody who has not said who they are. */
export async function committerOf(workspace: Workspace): Promise<Committer | null> {
  const { worktreeId } = (await workspace.worktree("read")).identity;
  const { agent } = await workspace.caller();
  return agent === null ? null : { agentId: agent.agentId, sessionId: agent.sessionId, worktreeId };
}

/** Whether this commit is a merge, or is to be one. */
export async function isMerging({ repository, surroundings }: Workspace): Promise<boolean> {
  return (await surroundings.platform.files.stat(`${repository.gitDir}/MERGE_HEAD`)) !== null;
}
