import type { Workspace } from "../../coordinator/workspace";
import { precaution } from "../snapshots/precaution";
import { type Synced, syncLedger } from "./exchange";
import { type LedgerAt, type OpenLedger, openLedger, whereIs } from "./open";
import { type Reconciled, reconcile } from "./reconcile";
import { type LedgerStanding, standingOf } from "./report";
import { cleanUp, forceResync, needsYes, type Resynced } from "./resync";
import { type SetUp, setUpLedger } from "./setup";

/** Exchanging claims and issues with other machines, over the ledger branch of the Git remote. */

interface Answers {
  /** Makes the ledger, or attaches to the one that is there. Changes nothing of the user's. */
  readonly "setup-ledger": SetUp;
  /** Settles claims, and merges what changed here and there field by field. */
  readonly "ledger-only": Synced;
  /** Only confirms the claims that were made offline. */
  readonly reconcile: Reconciled;
  /** How things stand. Changes nothing. */
  readonly status: LedgerStanding;
  /** Takes the remote's ledger for what it is. The worktree is kept as a snapshot first. */
  readonly "force-resync": Resynced & { readonly snapshotId: string | null };
  /** Removes this machine's copy; the remote keeps the ledger. */
  readonly "cleanup-ledger": CleanedUp;
}

export type SyncAction = keyof Answers;

export interface CleanedUp {
  readonly backup: string | null;
  readonly removed: boolean;
  /** The settings still name a ledger: claims go on being shared. */
  readonly isStillOn: boolean;
}

export interface SyncRequest<Action extends SyncAction> {
  readonly action: Action;
  /** For what forgets something: `force-resync` and `cleanup-ledger` do nothing without it. */
  readonly yes?: boolean | undefined;
  readonly onProgress?: ((done: number, all: number) => void) | undefined;
  /** Who reads and writes folders for the snapshot before a resync. */
}

export type SyncAnswer<Action extends SyncAction> = { readonly at: LedgerAt } & Answers[Action];

type Act<Action extends SyncAction> = (
  open: OpenLedger,
  workspace: Workspace,
  request: SyncRequest<Action>,
) => Promise<Answers[Action]>;

const noProgress = () => {};

const ACTS: { readonly [Action in SyncAction]: Act<Action> } = {
  "setup-ledger": async (open, workspace) => setUpLedger(open, workspace, (await workspace.agent()).agentId),
  "ledger-only": async (open, workspace, { onProgress = noProgress }) =>
    syncLedger(open, workspace, await workspace.session("write"), onProgress),
  reconcile: async (open, workspace, { onProgress = noProgress }) => {
    const { actor } = await workspace.session("write");
    return reconcile(open.ledger, actor, { most: null, onProgress });
  },
  status: async (open, workspace) => {
    const standing = await standingOf(open, workspace);
    if (standing.warning !== null) workspace.warnings.push(standing.warning);
    return standing;
  },
  "force-resync": async (open, workspace, { yes = false }) => {
    if (!yes)
      throw needsYes(
        "--force-resync",
        "it forgets what this machine has seen of the ledger, and takes the remote's as it is",
      );
    const { actor } = await workspace.session("write");
    // The next sync brings what the remote has into this worktree's issues.
    const { failure, snapshotId } = await precaution(workspace, "resync");
    if (failure !== null) throw failure;
    return { ...(await forceResync(open, actor)), snapshotId };
  },
  "cleanup-ledger": async (open, workspace, { yes = false }) => {
    if (!yes) {
      const { offlineClaims } = (await open.state.read()).state;
      const waiting =
        offlineClaims.length === 0 ? "" : `, and ${offlineClaims.length} claims wait to be confirmed`;
      throw needsYes("--cleanup-ledger", `it removes ${open.copy.place.directory}${waiting}`);
    }
    const cleaned = await cleanUp(open, workspace);
    const { source } = workspace.config.origin("sync.ledger_branch");
    return { ...cleaned, isStillOn: source !== "clone" && source !== "default" };
  },
};

export async function sync<Action extends SyncAction>(
  workspace: Workspace,
  request: SyncRequest<Action>,
): Promise<SyncAnswer<Action>> {
  const { action } = request;
  // Whoever changes something says who they are, before the remote is asked.
  if (action !== "status") await workspace.agent();
  // Also once it is turned off: what it has left on this machine can still be taken away.
  const open = await openLedger(workspace, {
    usualBranch: action === "cleanup-ledger" ? "cotenant-sync" : undefined,
  });
  const act: Act<Action> = ACTS[action];
  const answer = await act(open, workspace, request);
  return { at: whereIs(open), ...answer };
}
