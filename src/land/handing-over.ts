import type { CotenantError } from "../errors/cotenant-error";
import type { LandOutcome } from "./report";
import type { LandDesk } from "./running";

export async function handOver(
  _desk: LandDesk,
  _prefix: string,
): Promise<{ outcomes: readonly LandOutcome[]; stopped: CotenantError | null }> {
  return { outcomes: [], stopped: null };
}
