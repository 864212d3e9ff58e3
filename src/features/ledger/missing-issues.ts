import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import type { Ulid } from "../../kernel/ids";
import { issuesIn } from "../issues/desk";
import { resolveId } from "../issues/short-id";
import { DataSync } from "./data/sync";
import { mending } from "./mending-remote";
import { isLedgerOn, openLedger } from "./open";
import { isUnreachable } from "./remote";

/**
 * Issues that are on the ledger's branch and nowhere here, brought into this worktree: whoever claims need not have synced
 * first. Nothing is sent, and nothing that is here is changed. Answers what was brought; null where the remote cannot be
 * asked.
 */
export async function bringMissing(
  workspace: Workspace,
  choose: (missing: readonly Ulid[]) => readonly Ulid[],
): Promise<readonly Ulid[] | null> {
  if (!isLedgerOn(workspace)) return [];
  const session = await workspace.session("write");
  const open = await openLedger(workspace);
  const warn = (warning: string) => void workspace.warnings.push(warning);
  try {
    const known = new Set(await (await issuesIn(workspace)).ids());
    return await mending(open.copy, warn, async () =>
      new DataSync(open, workspace, session).bring((there) => choose(there.filter((id) => !known.has(id)))),
    );
  } catch (error) {
    if (isUnreachable(error)) return null;
    throw error;
  } finally {
    await open.remote.settle().catch(() => {});
  }
}

/** The one that somebody means, if it is missing here; what `error`, which says so, comes to where it is not there either. */
export async function bringMeant(
  workspace: Workspace,
  typed: string,
  error: CotenantError,
): Promise<CotenantError | null> {
  const brought = await bringMissing(workspace, (missing) => {
    try {
      return [resolveId(typed, missing)];
    } catch (refused) {
      if (refused instanceof CotenantError && refused.code === "E_NOT_FOUND") return [];
      throw refused;
    }
  });
  if (brought !== null && brought.length > 0) return null;
  const also = brought === null ? "the ledger cannot be asked for it" : "nor on the ledger";
  return error.with({ message: `${error.message}; ${also}` });
}
