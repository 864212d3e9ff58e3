import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import type { Trees } from "../../platform/trees";
import { modesFor } from "../../store/layout";
import type { TreePlace } from "./listing";
import { Shelf } from "./shelf";
import type { Studio } from "./studio";

/** Everything that a snapshot of one worktree takes. */
export interface Darkroom {
  readonly workspace: Workspace;
  readonly session: Session;
  readonly trees: Trees;
  readonly studio: Studio;
  readonly place: TreePlace;
  readonly shelf: Shelf;
}

export async function darkroomIn(workspace: Workspace, trees: Trees): Promise<Darkroom> {
  return { ...readingRoomIn(workspace, trees), session: await workspace.session("write") };
}

/** For whoever only looks. */
export function readingRoomIn(workspace: Workspace, trees: Trees): Omit<Darkroom, "session"> {
  const { surroundings, repository } = workspace;
  const { platform, git } = surroundings;
  const { worktreeRoot: root, gitDir, commonDir, controlDir, config } = repository;
  return {
    workspace,
    trees,
    studio: { platform, git, trees, format: config.objectFormat, refFormat: config.refFormat },
    place: { root, gitDir, commonDir },
    shelf: new Shelf(platform, controlDir, modesFor(config.sharedRepository)),
  };
}
