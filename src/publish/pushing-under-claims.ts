import type { Session } from "../coordinator/session";
import type { Workspace } from "../coordinator/workspace";
import { CotenantError } from "../errors/cotenant-error";
import type { Ulid } from "../kernel/ids";
import type { Lease } from "../kernel/lease";
import type { ObjectId } from "../objects/object-name";
import type { ClaimsUnder } from "./claims";
import { type PushResult, push, pushEvent } from "./pushing";

export interface WantedPush {
  readonly remote: string;
  readonly ref: string;
  readonly commit: ObjectId;
  readonly publishId: Ulid;
  /** Those that it is fenced by; throws when one of them has ended. */
  readonly claims: () => Promise<readonly Lease[]>;
}

/**
 * Pushes what was published, and logs what came of it. Where claims are shared: the branch and a new beat on each claim in one
 * push, or neither (PROTOCOL 24).
 */
export async function pushUnderClaims(
  workspace: Workspace,
  session: Session,
  under: ClaimsUnder,
  { remote, ref, commit, publishId, claims }: WantedPush,
): Promise<PushResult> {
  let result: PushResult;
  try {
    const held = await claims();
    result = await push(workspace, remote, ref, commit, () => under.fence(held, remote));
  } catch (error) {
    // The commit stands, whatever keeps it from the remote.
    if (!(error instanceof CotenantError)) throw error;
    result = { result: "failed", remote, code: error.code, why: error.message, hint: error.hint };
  }
  const said = "why" in result ? { why: result.why } : {};
  await session.write<true>([], {
    about: `publish ${ref}`,
    facts: [],
    isOnlyLogged: true,
    body: async () => ({
      type: pushEvent(result),
      payload: { publish_id: publishId, ref, new: commit, remote, push: result.result, ...said },
      facts: new Map(),
      answer: true,
    }),
  });
  return result;
}
