import { readRef } from "../../git/refs";
import type { Darkroom } from "./darkroom";
import type { Descriptor } from "./descriptor";
import type { Parts } from "./parts";
import { refOf } from "./shelf";
import { cachePath, loadRemembered, type Remembered } from "./stat-cache";

/** What a new snapshot may build on: what the last one saw, and one that keeps all of its objects alive. */
export interface Ground {
  readonly remembered: Remembered;
  readonly keeper: Descriptor;
}

/** Null where nothing is remembered, or nothing keeps it. */
export async function groundOf(room: Darkroom, withIgnored: boolean): Promise<Ground | null> {
  const { workspace, session, studio, shelf } = room;
  const path = cachePath(workspace.repository.controlDir, session.actor.worktreeId, withIgnored);
  const remembered = await loadRemembered(studio.platform, path);
  if (remembered === null) return null;
  const { isReady, descriptor: own } = await shelf.look(remembered.snapshotId);
  if (isReady && own !== null && (await isKept(room, own))) return { remembered, keeper: own };
  for (const keeper of await shelf.all())
    if (holdsAll(keeper, remembered) && (await isKept(room, keeper))) return { remembered, keeper };
  return null;
}

/** Files, permissions and index: one with the same files alone would not keep the rest. */
export function holdsAll(
  { tree, digest, index, stages, skipped }: Descriptor,
  { picture, rest }: Remembered,
): boolean {
  const parts = rest as unknown as Parts;
  return (
    tree === picture.tree &&
    digest === parts.digest &&
    index === parts.index &&
    stages === parts.stages &&
    skipped === parts.skipped
  );
}

/** Whether its ref is where it was put. */
export async function isKept(
  { workspace, studio, place }: Pick<Darkroom, "workspace" | "studio" | "place">,
  { snapshot_id: id, commit }: Descriptor,
): Promise<boolean> {
  const { refFormat, objectFormat } = workspace.repository.config;
  const refs = { worktreeRoot: place.root, commonDir: place.commonDir, config: { refFormat, objectFormat } };
  const ref = await readRef(studio.platform, studio.git, refs, refOf(id));
  return ref !== null && "oid" in ref && ref.oid === commit;
}
