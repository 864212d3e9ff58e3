import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import type { Occasion } from "./descriptor";
import { takeSnapshot } from "./new-snapshot";
import { pruneAutomatic } from "./retention";
import { snapshotContext } from "./snapshot-context";

export interface Precaution {
  readonly snapshotId: string | null;
  /** Why there is none. */
  readonly failure: CotenantError | null;
}

/**
 * What is taken by itself before something dangerous. Whoever took over a lock must know what was there, but has the lock
 * whether or not it could be kept: the failure is told, not thrown.
 */
export async function precaution(workspace: Workspace, occasion: Occasion): Promise<Precaution> {
  const context = await snapshotContext(workspace);
  try {
    const { descriptor } = await takeSnapshot(context, { consistency: "best_effort", automatic: occasion });
    await pruneAutomatic(context).catch(() => {});
    return { snapshotId: descriptor.snapshot_id, failure: null };
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    return { snapshotId: null, failure: error };
  }
}
