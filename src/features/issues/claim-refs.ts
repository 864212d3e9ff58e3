import type { Workspace } from "../../coordinator/workspace";
import { byKey, type LeaseRef } from "../../kernel/commands";
import type { Ulid } from "../../kernel/ids";
import { issueKeyOf, type LeaseKey } from "../../kernel/keys";
import { issuesIn } from "./desk";
import { wholeId } from "./meant";
import { resolveId } from "./short-id";

/** A claim as people name it: by the issue's id, short or whole, or by the lease's id. */
export async function claimRef(workspace: Workspace, typed: string): Promise<LeaseRef> {
  const whole = wholeId(typed);
  if (whole === null) return byKey(keyOfIssue(resolveId(typed, await (await issuesIn(workspace)).ids())));
  const ref = byKey(keyOfIssue(whole));
  // The claim of an issue that is gone can still be given back by the issue's id.
  const isKnown =
    (await workspace.coordinator.find([ref])).length > 0 ||
    (await (await issuesIn(workspace)).find(whole)) !== null;
  return isKnown ? ref : { key: null, leaseId: whole };
}

export function keyOfIssue(id: Ulid): LeaseKey {
  return issueKeyOf(id);
}
