import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import type { CotenantError } from "../../errors/cotenant-error";
import type { ObjectId } from "../../git/object-name";
import type { Ulid } from "../../kernel/ids";
import type { Commands } from "../../platform/commands";
import type { Trees } from "../../platform/trees";
import type { OpenFence } from "../publish/claims";
import type { ParkedWhy } from "./entry";

/** What a run works with. */
export interface LandParts {
  readonly workspace: Workspace;
  readonly session: Session;
  readonly trees: Trees;
  /** For `land.checks` and `worktree.setup`. */
  readonly commands: Commands;
  /** What stands between a push and the landing right, where claims are shared. */
  readonly openFence?: OpenFence;
}

export interface LandOptions {
  /** Null: as the configuration says. */
  readonly target?: string | null | undefined;
  /** Only these entries; all others stay. */
  readonly only?: readonly Ulid[] | undefined;
  /** The remote's name, null for the usual one; undefined: nothing is pushed. */
  readonly push?: string | null | undefined;
  /** Wait for another lander instead of being refused. */
  readonly wait?: boolean | undefined;
  /** How many are checked at once; null: `land.parallel`. */
  readonly parallel?: number | null | undefined;
  /** Put each entry at a branch below this prefix, and leave the target where it is. */
  readonly asBranch?: string | null | undefined;
  /** Null: `land.clean`. */
  readonly clean?: boolean | null | undefined;
  /** Say what would merge, and change nothing. */
  readonly dryRun?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: (event: LandProgress) => void;
}

export interface LandProgress {
  readonly kind: "note" | "waiting" | "checking" | "landed" | "parked" | "rebuilding";
  readonly entryId: Ulid | null;
  readonly branch: string | null;
  readonly text: string;
}

/** What became of one entry. */
export interface LandOutcome {
  readonly entryId: Ulid;
  readonly branch: string;
  readonly outcome: "landed" | "parked" | "waiting";
  /** On the target; null where it had all of it already, and where nothing landed. */
  readonly commit: ObjectId | null;
  /** Where it is: the target, or the branch that it was handed over as. */
  readonly ref: string | null;
  readonly isRemoteOnly: boolean;
  readonly why: ParkedWhy | null;
  readonly message: string | null;
  readonly hint: string | null;
  readonly paths: readonly string[];
  readonly output: string;
  readonly outputFile: string | null;
  /** What was deleted after it. */
  readonly cleaned: readonly string[];
}

export interface LandReport {
  readonly target: string;
  /** Those that were in the queue, in its order. */
  readonly entries: readonly LandOutcome[];
  /** Where the target is now; null where there is none here. */
  readonly tip: ObjectId | null;
  readonly remote: string | null;
  /** How many commands each entry had to pass. */
  readonly checks: number;
  readonly isDryRun: boolean;
  /** What ended the run early; the entries that are left are not at fault. */
  readonly stopped: CotenantError | null;
}
