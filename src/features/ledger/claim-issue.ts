import type { Acquired, Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import type { Ulid } from "../../kernel/ids";
import { issueKeyOf, type LeaseKey } from "../../kernel/keys";
import type { Reach } from "../../kernel/lease";
import { type ClaimTerms, confirmClaim, refuseUnclaimable } from "../issues/claimable";
import { issuesIn } from "../issues/desk";
import { takenBack } from "../issues/lost";
import { meantId } from "../issues/meant";
import type { IssueReader } from "../issues/reader";
import type { FoundIssue } from "../issues/resolve";
import { tokenSeen } from "../issues/stamps";

/** Which one somebody wants to claim: also one that only the ledger has, which is brought here then. */
export async function meantForClaim(workspace: Workspace, typed: string): Promise<Ulid> {
  try {
    return await meantId(await issuesIn(workspace), typed);
  } catch (error) {
    const isMissing = error instanceof CotenantError && error.code === "E_NOT_FOUND";
    if (!isMissing || workspace.config.values["sync.ledger_branch"] === null) throw error;
    const { bringMeant } = await import("./missing-issues");
    const refused = await bringMeant(workspace, typed, error);
    if (refused !== null) throw refused;
    return meantId(await issuesIn(workspace), typed);
  }
}

/** What is asked of the coordinator to claim an issue, and what has to be seen to once it is granted. */
export interface IssueClaim {
  readonly keys: readonly { readonly key: LeaseKey; readonly reach: Reach }[];
  readonly aboveToken: number;
  confirm(session: Session, grant: Acquired): Promise<void>;
}

/** Refuses what may not be claimed on these terms, whoever asks, now and again when it is granted. `isOwn`: the caller holds it. */
export async function claimOf(
  workspace: Workspace,
  found: FoundIssue,
  terms: ClaimTerms,
  isOwn: boolean,
): Promise<IssueClaim> {
  const reader = await issuesIn(workspace);
  // Whoever holds it asks for what they have: nothing begins by that.
  await refuseUnclaimable(reader, found, { ...terms, allowsBlocked: terms.allowsBlocked === true || isOwn });
  return {
    keys: [{ key: issueKeyOf(found.id), reach: "repository" }],
    aboveToken: tokenSeen([found.issue]),
    confirm: (session, grant) =>
      confirmClaim(session, grant, async () => {
        const now = await issuesIn(workspace);
        await refuseUnclaimable(now, await claimable(now, found.id, terms), terms);
      }),
  };
}

/** The issue as it is looked at on these terms: to bring it back, also one that is gone. */
export function claimable(reader: IssueReader, id: Ulid, { isReopening }: ClaimTerms): Promise<FoundIssue> {
  return isReopening === true ? takenBack(reader, id) : reader.get(id);
}
