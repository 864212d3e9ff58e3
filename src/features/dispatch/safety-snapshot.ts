import { CotenantError } from "../../errors/cotenant-error";
import { type Precaution, precaution } from "../snapshots/precaution";
import { clearLocks, detachAt, headOf, isDirty } from "./branches";
import type { Crew } from "./crew";
import type { Station } from "./slots";

/** A worker's worktree as it is: nothing that an agent has done is lost with its claim. */
export function keepSnapshot({ workspace }: Station): Promise<Precaution> {
  return precaution(workspace, "dispatch");
}

/** Leaves a worker's worktree to whoever comes next, on no branch; what was not committed there is kept. */
export async function clearWorktree(crew: Crew, station: Station): Promise<void> {
  const say = (text: string, data: Readonly<Record<string, unknown>> = {}) =>
    crew.tell("note", text, station.slot.number, null, data);
  try {
    await clearLocks(station);
    if (await isDirty(station)) {
      const { snapshotId, failure } = await keepSnapshot(station);
      if (failure !== null) throw failure;
      say(`kept what was left in its worktree as snapshot ${snapshotId}`, { snapshot_id: snapshotId });
    }
    await detachAt(station, await headOf(station));
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    say(`its worktree is left as it is: ${error.message}`);
  }
}
