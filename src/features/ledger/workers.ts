import { sharesClaims } from "../../config/shared-claims";
import type { Workspace } from "../../coordinator/workspace";
import { byKey } from "../../kernel/commands";
import type { Ulid } from "../../kernel/ids";
import { keyOfIssue } from "../issues/claim-refs";
import { elsewhereIn, type Workers, workersAmong, workersOf } from "../issues/effective";
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

/** Who works on one issue, without a look at all the others. */
export async function workersOn(workspace: Workspace, id: Ulid): Promise<Workers> {
  const { coordinator } = workspace;
  const claims = await coordinator.find([byKey(keyOfIssue(id))]);
  return workersAmong(coordinator, claims, elsewhereIn(await ledgerView(workspace)));
}

/** What other machines took since the last look, and what they have made. Where they cannot be asked, what was last heard has to do. */
export async function hearOfClaims(workspace: Workspace): Promise<void> {
  if (!sharesClaims(workspace.config)) return;
  const { hearAll } = await import("./open");
  if (!(await hearAll(workspace))) return;
  const { bringMissing } = await import("./missing-issues");
  await bringMissing(workspace, (missing) => missing);
}
