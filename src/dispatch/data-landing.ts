import type { Ulid } from "../kernel/ids";
import { tipOf } from "../publish/base";
import {
  branchOf,
  carryOver,
  commitData,
  detachAt,
  dropBranchAt,
  headOf,
  isDirty,
  isWithin,
  onlyData,
  putBranch,
  tipOfBranch,
} from "./branches";
import type { Lander } from "./landing";
import type { Station } from "./slots";

/** Each that fails means that somebody else's has landed meanwhile: as many as there are workers, or nearly. */
const MOST_TRIES = 50;

export interface DataLanding {
  readonly station: Station;
  readonly lander: Lander;
  readonly issueId: Ulid;
  readonly target: string;
  readonly message: string;
  /** Of our own, for as long as it takes. */
  readonly branch: string;
  /** A killed run may have begun with the very same; what it has written counts as written. */
  readonly resumes: boolean;
  write(): Promise<void>;
}

/** What is written of an issue, on top of the target, where it lands at once. Answers why it did not; null where it did. */
export async function landData(landing: DataLanding): Promise<string | null> {
  const { station, lander, branch, issueId } = landing;
  const first = await committed(landing);
  if (first === null) return null;
  let commit: string = first;
  for (let tries = 1; ; tries++) {
    await putBranch(station, branch, commit);
    const { outcome, why, message } = await lander.land(branch, { issueId, method: "rebase" });
    if (outcome === "landed") {
      await dropBranchAt(station, branch, commit);
      return null;
    }
    const carried: string | null =
      why === "conflict" && tries < MOST_TRIES ? await carryOver(station, commit, await tip(landing)) : null;
    if (carried === null) return message ?? why ?? "it was put aside";
    commit = carried;
  }
}

/** Null where there is nothing to land any more. */
async function committed(landing: DataLanding): Promise<string | null> {
  const { station, branch, message, write, resumes, lander } = landing;
  const named = resumes ? await tipOfBranch(station, branch) : null;
  if (named !== null) {
    const entry = await lander.added(branch, named);
    if (entry?.state !== "landed" && !(await isWithin(station, named, await tip(landing)))) return named;
    await dropBranchAt(station, branch, named);
  }
  const begun = resumes ? await begunHere(landing) : null;
  if (begun === null) await detachAt(station, await tip(landing));
  await write();
  return (await commitData(station, message)) ?? begun;
}

/** The HEAD of a worktree in which a killed run has written this, committed or not; null where it has not. */
async function begunHere(landing: DataLanding): Promise<string | null> {
  const { station, lander, branch } = landing;
  if ((await branchOf(station)) !== null) return null;
  const [head, target] = [await headOf(station), await tip(landing)];
  const isBeyond = !(await isWithin(station, head, target));
  if (!isBeyond && !(await isDirty(station))) return null;
  if (isBeyond && (await lander.added(branch, head))?.state === "landed") return null;
  const base = isBeyond ? `${head}^` : head;
  if (!(await isWithin(station, base, target)) || !(await onlyData(station, base))) return null;
  return head;
}

async function tip({ station, target }: DataLanding): Promise<string> {
  return (await tipOf(station.workspace, target)) ?? (await headOf(station));
}
