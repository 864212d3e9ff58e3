import { givenReason } from "../../../coordinator/requests";
import type { Acquired } from "../../../coordinator/session";
import type { Workspace } from "../../../coordinator/workspace";
import { byKey } from "../../../kernel/commands";
import { makeUlid, type Ulid, ulidTimeMs } from "../../../kernel/ids";
import type { Platform } from "../../../platform/platform";
import { keyOfIssue } from "../../issues/claim-refs";
import { openNeeds, refuseOpenNeeds } from "../../issues/claimable";
import { type Desk, deskIn } from "../../issues/desk";
import {
  type CreatedIssue,
  type CreateRequest,
  createdIssue,
  creatorAt,
  draftOf,
} from "../../issues/operations/creation";
import { shortId } from "../../issues/short-id";
import type { Draft } from "../../issues/writer";
import { acquireLeases, checkedTerms, type LeaseTerms } from "../../locks/operations";

export interface CreateClaimedRequest extends CreateRequest, LeaseTerms {
  /** Claim it though it waits for another issue; needs a reason. */
  readonly allowBlocked?: boolean | undefined;
}

export interface CreatedClaim {
  readonly created: CreatedIssue;
  readonly granted: Acquired;
}

/**
 * An issue and its claim, as one: the claim comes first, because it may be refused, and nobody can know the new id yet. A
 * process that dies in between leaves a claim that runs out, and no issue.
 */
export async function createClaimed(
  workspace: Workspace,
  request: CreateClaimedRequest,
): Promise<CreatedClaim> {
  // Whatever can be told from the request alone is said before anything is written.
  const { requestId } = await checkedTerms(workspace, request, [], "claim");
  if (request.allowBlocked === true) givenReason(request.reason, "claiming an issue that waits for another");
  const desk = await deskIn(workspace);
  const { reader } = desk;
  const others = await reader.ids();
  const ownId = requestId === null ? null : idForRequest(workspace.surroundings.platform, requestId);
  const draft = await draftOf(desk, request, ownId);
  const { id } = draft.issue;
  if (request.allowBlocked !== true)
    refuseOpenNeeds(id, await openNeeds(reader, draft.dependencies), "claimed");
  const key = keyOfIssue(id);
  const granted = await acquireLeases(workspace, { keys: [key] }, request);
  try {
    const issue = await createOnce(desk, draft, ownId !== null);
    return { created: createdIssue(desk, issue, draft, shortId(issue.id, others)), granted };
  } catch (error) {
    // Why there is no issue is what has to be said.
    const session = await workspace.session("write");
    await session.release([byKey(key)]).catch(() => {});
    throw error;
  }
}

async function createOnce(desk: Desk, draft: Draft, isRequested: boolean): Promise<Draft["issue"]> {
  const { id } = draft.issue;
  const made = isRequested ? await desk.reader.find(id) : null;
  return made === null ? (await creatorAt(desk)).createOne(draft, null) : (await desk.reader.get(id)).issue;
}

/** The id of the issue that a request makes: the same one however often it is asked for. */
function idForRequest({ digest }: Pick<Platform, "digest">, requestId: Ulid): Ulid {
  const hex = digest.sha256(`issue of request ${requestId}`);
  const random = Uint8Array.from({ length: 10 }, (_, at) =>
    Number.parseInt(hex.slice(at * 2, at * 2 + 2), 16),
  );
  return makeUlid(ulidTimeMs(requestId), random);
}
