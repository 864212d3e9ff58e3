import type { ProcessIdentity } from "../../../platform/platform";
import { openMoves } from "../../land/checkout";
import { RESTORING } from "../../snapshots/inplace";
import { makings } from "../../worktrees/records";
import { removals } from "../../worktrees/removal";
import { type Check, note, ok, type Reported, warning } from "../finding";
import type { Patient } from "../patient";

const REPAIR = "run: cotenant doctor --strict --repair (any 'worktree create' settles it, too)";

const LAND_AGAIN =
  "a person runs: cotenant land run (it finishes or takes back what was begun, and clears Git's index.lock)";

/** Worktrees that somebody was making, removing or restoring. */
export const unfinishedCheck: Check = {
  name: "unfinished",
  async look(patient) {
    const { coordinator } = patient;
    const found: Reported[] = [];
    for (const { place, maker } of await makings(coordinator))
      found.push(await told(patient, maker, `the worktree ${place} is being made`, { root: place }));
    for (const { root, maker } of await removals(coordinator))
      found.push(await told(patient, maker, `the worktree ${root} is being removed`, { root }));
    for (const { value } of (await coordinator.facts({ kinds: [RESTORING] })).values()) {
      const { maker, before, snapshot_id: id } = value;
      const words = `snapshot ${String(id)} is being restored in place (what was there is snapshot ${String(before)})`;
      found.push(await told(patient, maker as ProcessIdentity, words, { snapshot_id: id, before }));
    }
    for (const { root, lander, ref, new: next } of await openMoves(coordinator)) {
      const words = `the files of ${root} are moving along with ${ref}`;
      found.push(await told(patient, lander, words, { root, ref, commit: next }, LAND_AGAIN));
    }
    return found.length === 0 ? [ok("nothing is half done")] : found;
  },
};

async function told(
  { platform }: Patient,
  maker: ProcessIdentity,
  words: string,
  data: Readonly<Record<string, unknown>>,
  next = REPAIR,
): Promise<Reported> {
  const isDead = (await platform.processes.liveness(maker)) === "dead";
  return isDead ? warning(`${words}, and its process has died`, next, data) : note(words, null, data);
}
