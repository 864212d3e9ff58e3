import type { LandEntry } from "./entry";
import type { LandDesk } from "./running";

/** Deletes what a landed entry has left behind. Answers what it deleted, for people. */
export async function cleanUp(_desk: LandDesk, _entry: LandEntry): Promise<string[]> {
  return [];
}
