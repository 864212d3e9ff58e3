import { errorFrom, orThrow } from "../../errors/cotenant-error";
import { type ByteText, fromByteText } from "../../git/byte-text";
import { rulingKey } from "../../identity/path-keys";
import { type Extent, ExtentIndex } from "../../kernel/conflicts";
import { dirKey } from "../../kernel/keys";
import { belongsTo } from "../../kernel/lease";
import { heldBy } from "../../kernel/words";
import type { Descriptor } from "./descriptor";
import type { Replacement } from "./replacement";
import type { SnapshotContext } from "./snapshot-context";

/** Throws who else holds something that an in-place restore would change: what is held is its holder's to write. */
export type Watch = () => Promise<void>;

export function watchOver(
  { workspace, session }: SnapshotContext,
  plan: Replacement,
  { snapshot_id: id }: Descriptor,
): Watch {
  const { actor, coordinator } = session;
  const here = { reach: "worktree", worktreeId: actor.worktreeId } as const;
  const concerned = new ExtentIndex(
    pathsOf(plan).map((path): Extent => ({ key: rulingKey(workspace, fromByteText(path)), ...here })),
  );
  const everything = [{ key: orThrow(dirKey(".")), ...here }];
  return async () => {
    const found = await coordinator.overlapping(everything);
    const others = found
      .filter(({ lease, standing }) => standing === "valid" && !belongsTo(lease, actor))
      .map(({ lease }) => lease)
      .filter((lease) => concerned.conflictsWith(lease));
    if (others.length === 0) return;
    const hint = `wait until it is given back, or restore into a new worktree: cotenant restore ${id}`;
    throw errorFrom(heldBy(others, workspace.store.now(), hint));
  };
}

function pathsOf(plan: Replacement): ByteText[] {
  const directories = [...plan.makeDirectories, ...plan.chmodDirectories].map(([path]) => path);
  return [
    ...[...plan.write, ...plan.chmod].map(({ path }) => path),
    ...plan.remove,
    // A directory is changed by whoever may change what is in it.
    ...[...directories, ...plan.removeDirectories].map((path) => `${path}/-`),
  ];
}
