import { CotenantError } from "../../errors/cotenant-error";
import type { Darkroom } from "./darkroom";
import type { Occasion } from "./descriptor";
import { pruneAutomatic } from "./retention";
import { takeSnapshot } from "./taking";

export interface Precaution {
  readonly snapshotId: string | null;
  /** Why there is none. */
  readonly failure: CotenantError | null;
}

/**
 * What is taken by itself before something dangerous. Whoever took over a lock must know what was there, but has the lock
 * whether or not it could be kept: the failure is told, not thrown.
 */
export async function precaution(room: Darkroom, occasion: Occasion): Promise<Precaution> {
  try {
    const { descriptor } = await takeSnapshot(room, { consistency: "best_effort", automatic: occasion });
    await pruneAutomatic(room).catch(() => {});
    return { snapshotId: descriptor.snapshot_id, failure: null };
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    return { snapshotId: null, failure: error };
  }
}
