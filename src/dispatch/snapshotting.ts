import { darkroomIn } from "../snapshots/darkroom";
import { type Precaution, precaution } from "../snapshots/precaution";
import type { DispatchParts } from "./report";
import type { Station } from "./slots";

/** A worker's worktree as it is: nothing that an agent has done is lost with its claim. */
export async function keepSnapshot({ trees }: DispatchParts, { workspace }: Station): Promise<Precaution> {
  return precaution(await darkroomIn(workspace, trees), "dispatch");
}
