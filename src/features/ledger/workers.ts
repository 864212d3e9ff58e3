import { sharesClaims } from "../../config/shared-claims";
import type { Workspace } from "../../coordinator/workspace";
import { elsewhereIn, type Workers, workersOf } from "../issues/effective";
import type { ClaimsView } from "./view";

/** What the ledger knows of claims; null where there is none. Loaded only where there is one. */
export async function ledgerView(workspace: Workspace): Promise<ClaimsView | null> {
  if (!sharesClaims(workspace.config)) return null;
  const { claimsView } = await import("./view");
  return claimsView(workspace);
}

/** Who works on issues, here and, as far as was heard, on other machines. */
export async function workersIn(workspace: Workspace): Promise<Workers> {
  return workersOf(workspace.coordinator, elsewhereIn(await ledgerView(workspace)));
}

/** What other machines took since the last look, and what they have made. Where they cannot be asked, what was last heard has to do. */
export async function hearOfClaims(workspace: Workspace): Promise<void> {
  if (!sharesClaims(workspace.config)) return;
  const { hearAll } = await import("./open");
  if (!(await hearAll(workspace))) return;
  const { bringMissing } = await import("./bringing");
  await bringMissing(workspace, (missing) => missing);
}
