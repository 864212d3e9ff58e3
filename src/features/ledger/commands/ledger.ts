import type { Grant, LedgerSay } from "../../../coordinator/contract";
import type { Workspace } from "../../../coordinator/workspace";
import type { Testimony } from "../../hooks/push";

/** What the claims at the remote say about commits; null where there is no ledger. `isAsked`: the remote is asked first. */
export async function testimony(workspace: Workspace, isAsked: boolean): Promise<Testimony | null> {
  if (workspace.config.values["sync.ledger_branch"] === null) return null;
  const { clonesTestimony } = await import("../witness");
  return clonesTestimony(workspace, isAsked);
}

/** A claim that was held and confirmed already needed no word from the remote: its answer says so all the same. */
export function withLedger(workspace: Workspace, grant: Grant): Grant {
  const claim = grant.leases.find(({ key }) => key.startsWith("issue:"));
  if (grant.ledger !== undefined || claim === undefined) return grant;
  if (workspace.config.values["sync.ledger_branch"] === null) return grant;
  const say = { claimedBy: claim.agentId, retries: 0, isOffline: false, isDegraded: false, warnings: [] };
  return { ...grant, ledger: say };
}

/** What people should hear of it. */
export function tellSay(workspace: Workspace, say: LedgerSay | undefined): void {
  if (say !== undefined) workspace.warnings.push(...say.warnings);
}
