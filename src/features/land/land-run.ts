import { CotenantError } from "../../errors/cotenant-error";
import type { Ulid } from "../../kernel/ids";
import type { ClaimsUnder } from "../publish/claims";
import type { Yard } from "../worktrees/place";
import type { BranchMover } from "./branch-mover";
import type { CandidateTools } from "./candidate";
import { entriesOf, type LandEntry } from "./entry";
import type { Lead } from "./lead";
import type { LandParts, LandProgress } from "./report";
import type { ScratchRoom } from "./scratch";
import { shownBranch } from "./target";

/** Everything that a run has at hand, once it is the target's only lander. */
export interface LandRun {
  readonly parts: LandParts;
  readonly yard: Yard;
  readonly target: string;
  readonly remote: string | null;
  /** Where branches go that are added without a word of where. */
  readonly usualTarget: string;
  readonly lead: Lead;
  readonly tools: CandidateTools;
  readonly mover: BranchMover;
  readonly claims: ClaimsUnder;
  readonly room: ScratchRoom;
  readonly parallel: number;
  readonly clean: boolean;
  readonly only: readonly Ulid[] | null;
  /** Aborted by the caller, or because somebody else lands now. */
  readonly signal: AbortSignal;
  readonly tell: (kind: LandProgress["kind"], text: string, entry?: LandEntry) => void;
}

/** Those of the queue that a run is about. */
export async function queuedIn({
  parts,
  target,
  only,
}: Pick<LandRun, "parts" | "target" | "only">): Promise<LandEntry[]> {
  const all = await entriesOf(parts.workspace.coordinator);
  return all.filter(
    (entry) =>
      entry.target === target && entry.state === "queued" && (only === null || only.includes(entry.entryId)),
  );
}

/** What Git cannot do with one entry stops the others as well: whoever reads of it has to know which. */
export async function naming<T>({ entryId, branch }: LandEntry, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof CotenantError) || error.code !== "E_GIT") throw error;
    throw error.with({
      message: `${shownBranch(branch)}: ${error.message}`,
      hint: `${error.hint}; or go on without it: cotenant land remove ${entryId}`,
      data: { entry_id: entryId },
    });
  }
}

export function interrupted(target: string): CotenantError {
  return new CotenantError("E_INTERRUPTED", `interrupted while landing on ${shownBranch(target)}`, {
    hint: "run it again: it goes on with what is in the queue",
    data: { target },
  });
}
