import { sharesClaims } from "../../config/shared-claims";
import type { Coordinator } from "../../coordinator/contract";
import type { Workspace } from "../../coordinator/workspace";
import type { SharedRemotes } from "./shared-remotes";

/** Where claims are shared between machines; loaded only there. */
export async function ledgerInFront(
  workspace: Workspace,
  remotes?: SharedRemotes,
): Promise<Coordinator | null> {
  if (!sharesClaims(workspace.config)) return null;
  return (await import("./open")).ledgerEngine(workspace, remotes);
}
