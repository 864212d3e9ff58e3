import type { Workspace } from "../coordinator/workspace";
import { sync } from "../features/ledger/operations";
import { reconciledJson, standingJson, syncedJson } from "../features/ledger/report";

export type SyncAction = "pull" | "push" | "setup" | "status" | "reconcile";

/** What `sync` does, for programs. Fetching and sending is one exchange, so that `pull` and `push` are the same. */
export async function syncAs(
  workspace: Workspace,
  action: SyncAction,
): Promise<Readonly<Record<string, unknown>>> {
  await workspace.agent();
  switch (action) {
    case "status":
      return standingJson(await sync(workspace, { action }));
    case "setup": {
      const { at, createdBranch, createdCopy, head } = await sync(workspace, {
        action: "setup-ledger",
      });
      return { ...at, created_branch: createdBranch, created_copy: createdCopy, head };
    }
    case "reconcile":
      return reconciledJson(await sync(workspace, { action }));
    case "pull":
    case "push":
      return syncedJson(await sync(workspace, { action: "ledger-only" }));
  }
}
