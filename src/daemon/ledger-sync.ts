import type { Workspace } from "../coordinator/workspace";
import { openLedger } from "../features/ledger/open";
import { reconcile } from "../features/ledger/reconcile";
import { placeJson, reconciledJson, standingJson, standingOf, syncedJson } from "../features/ledger/report";
import { setUpLedger } from "../features/ledger/setup";
import { syncLedger } from "../features/ledger/syncing";

export type SyncAction = "pull" | "push" | "setup" | "status" | "reconcile";

/** What `sync` does, for programs. Fetching and sending is one exchange, so that `pull` and `push` are the same. */
export async function syncAs(
  workspace: Workspace,
  action: SyncAction,
): Promise<Readonly<Record<string, unknown>>> {
  const { agentId } = await workspace.agent();
  const open = await openLedger(workspace);
  const onProgress = () => {};
  switch (action) {
    case "status":
      return standingJson(open, await standingOf(open, workspace));
    case "setup": {
      const { createdBranch, createdCopy, head } = await setUpLedger(open, workspace, agentId);
      return { ...placeJson(open), created_branch: createdBranch, created_copy: createdCopy, head };
    }
    case "reconcile": {
      const { actor } = await workspace.session("write");
      return reconciledJson(await reconcile(open.ledger, actor, { most: null, onProgress }));
    }
    case "pull":
    case "push":
      return syncedJson(
        open,
        await syncLedger(open, workspace, await workspace.session("write"), onProgress),
      );
  }
}
