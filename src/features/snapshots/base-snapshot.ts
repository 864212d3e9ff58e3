import { readRef } from "../../git/refs";
import type { Descriptor } from "./descriptor";
import { refOf } from "./descriptor-store";
import type { Parts } from "./parts";
import type { SnapshotContext } from "./snapshot-context";
import { cachePath, loadRemembered, type Remembered } from "./stat-cache";

/** What a new snapshot may build on: what the last one saw, and one that keeps all of its objects alive. */
export interface BaseSnapshot {
  readonly remembered: Remembered;
  readonly keeper: Descriptor;
}

/** Null where nothing is remembered, or nothing keeps it. */
export async function baseSnapshotOf(
  context: SnapshotContext,
  withIgnored: boolean,
): Promise<BaseSnapshot | null> {
  const { workspace, session, machine, descriptors } = context;
  const path = cachePath(workspace.repository.controlDir, session.actor.worktreeId, withIgnored);
  const remembered = await loadRemembered(machine.platform, path);
  if (remembered === null) return null;
  const { isReady, descriptor: own } = await descriptors.look(remembered.snapshotId);
  if (isReady && own !== null && (await isKept(context, own))) return { remembered, keeper: own };
  for (const keeper of await descriptors.all())
    if (holdsAll(keeper, remembered) && (await isKept(context, keeper))) return { remembered, keeper };
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
  { workspace, machine, place }: Pick<SnapshotContext, "workspace" | "machine" | "place">,
  { snapshot_id: id, commit }: Descriptor,
): Promise<boolean> {
  const { refFormat, objectFormat } = workspace.repository.config;
  const refs = { worktreeRoot: place.root, commonDir: place.commonDir, config: { refFormat, objectFormat } };
  const ref = await readRef(machine.platform, machine.git, refs, refOf(id));
  return ref !== null && "oid" in ref && ref.oid === commit;
}
