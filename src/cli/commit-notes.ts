import type { Workspace } from "../coordinator/workspace";
import type { Judgement } from "../enforce/commit";
import { keepNote } from "../enforce/commit-note";
import type { CommitNote } from "../enforce/note-format";
import { type Trailer, type Trailers, trailerLines } from "../enforce/trailers";
import { keyOfIssue } from "./issues";
import { byKey } from "./targets";

/** Leaves for the hooks that come after this one what was found out about the commit. */
export async function noteOf(workspace: Workspace, judgement: Judgement): Promise<CommitNote> {
  const note: CommitNote = {
    isClean: judgement.objections.length === 0,
    isHeld: judgement.isHeld,
    paths: judgement.changes.map(({ path }) => path),
    trailers: trailerLines(await trailersFor(workspace, judgement)),
  };
  await keepNote(workspace, note);
  return note;
}

async function trailersFor(workspace: Workspace, { issues, committer }: Judgement): Promise<Trailers> {
  if (issues.length === 0) return { agentId: null, worktreeId: null, issues: [] };
  const held = await workspace.coordinator.find(issues.map(({ id }) => byKey(keyOfIssue(id))));
  const trailers = issues.map(({ id, issue }): Trailer => {
    // The claim that the content was written under; else the one that stands.
    const { lease_id: leaseId = null, fencing_token: token = null } = issue?.stamp ?? {};
    if (leaseId !== null) return { issueId: id, leaseId, token };
    const standing = held.find(({ lease, standing: now }) => lease.key === `issue:${id}` && now === "valid");
    return {
      issueId: id,
      leaseId: standing?.lease.leaseId ?? null,
      token: standing?.lease.fencingToken ?? null,
    };
  });
  return { agentId: committer?.agentId ?? null, worktreeId: committer?.worktreeId ?? null, issues: trailers };
}
