import { carryOver, commitData, detachAt, dropBranchAt, putBranch } from "./branches";
import type { Turn } from "./turn";

/** Somebody else may land something in the same file meanwhile. */
const MOST_TRIES = 50;

/**
 * Writes something of an issue on top of the target and lands it at once: only what is merged is seen by everybody. `name` is of a branch
 * of our own, for as long as it takes. Answers why it did not land; null where it did, or was there already.
 */
export async function landData(
  turn: Turn,
  { name, message, write }: { readonly name: string; readonly message: string; write(): Promise<void> },
): Promise<string | null> {
  const { station, issue, crew } = turn;
  const branch = `cotenant/${name}`;
  await detachAt(station, await turn.targetTip());
  await write();
  let commit = await commitData(station, message);
  // A killed run may have left its branch.
  if (commit === null) await dropBranchAt(station, branch, null);
  for (let tries = 1; commit !== null; tries++) {
    await putBranch(station, branch, commit);
    const {
      outcome,
      why,
      message: words,
    } = await crew.lander!.land(branch, {
      ...{ issueId: issue.row.id, method: "rebase" as const },
    });
    if (outcome === "landed") {
      await dropBranchAt(station, branch, commit);
      return null;
    }
    const isWorthIt = why === "conflict" && tries < MOST_TRIES;
    commit = isWorthIt ? await carryOver(station, commit, await turn.targetTip()) : null;
    if (commit === null) return `${words ?? why ?? "it was put aside"}; it is on branch ${branch} only`;
  }
  return null;
}
