import type { Workspace } from "../../../coordinator/workspace";
import type { Judgement } from "../commit";
import { freshTrailers, isMadeOfOthers, isMerging } from "../commit-message";
import { keepNote } from "../commit-note";
import type { CommitNote } from "../note-format";
import { trailerLines } from "../trailers";
import { isAmending } from "./amending";

/** Leaves for the hooks that come after this one what was found out about the commit. */
export async function noteOf(workspace: Workspace, judgement: Judgement): Promise<CommitNote> {
  const note: CommitNote = {
    isClean: judgement.objections.length === 0,
    needsSettling: judgement.isHeld || (await hasRecords(workspace)),
    paths: judgement.changes.map(({ path }) => path),
    trailers: trailerLines(await freshTrailers(workspace, judgement), judgement.isRuled),
    isMadeOfOthers: (await amends(workspace, judgement.changes.length)) || (await isMadeOfOthers(workspace)),
  };
  await keepNote(workspace, note);
  return note;
}

/** Where nobody can see it: a commit of nothing that is no merge takes the place of another. */
export async function amends(workspace: Workspace, staged: number): Promise<boolean> {
  return isAmending() ?? (staged === 0 && !(await isMerging(workspace)));
}

/** What the guard has on record may be settled by this commit. */
async function hasRecords({ coordinator }: Workspace): Promise<boolean> {
  return (await coordinator.glance(["left", "guard-violation"])).length > 0;
}
