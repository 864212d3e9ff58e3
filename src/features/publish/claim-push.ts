import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import type { ObjectId } from "../../git/object-name";
import type { Ulid } from "../../kernel/ids";
import type { ClaimsUnder } from "./claims";
import type { Noun } from "./intents";
import { type PushResult, push, pushEvent } from "./push";

export interface WantedPush {
  readonly remote: string;
  readonly ref: string;
  readonly commit: ObjectId;
  readonly publishId: Ulid;
  /** What the log calls it; a publish unless told. */
  readonly noun?: Noun;
  /** See `push`. */
  readonly expected?: ObjectId | null;
}

/**
 * Pushes what was published, and logs what came of it. Where claims are shared: the branch and a new beat on each claim that
 * its commits name, in one push, or neither (PROTOCOL 24).
 */
export async function pushUnderClaims(
  workspace: Workspace,
  session: Session,
  under: ClaimsUnder,
  { remote, ref, commit, publishId, noun = "publish", expected }: WantedPush,
): Promise<PushResult> {
  let result: PushResult;
  try {
    result = await push(workspace, remote, ref, commit, (tip) => under.fence(tip, remote), expected);
  } catch (error) {
    // The commit stands, whatever keeps it from the remote.
    if (!(error instanceof CotenantError)) throw error;
    result = { result: "failed", remote, code: error.code, why: error.message, hint: error.hint };
  }
  const said = "why" in result ? { why: result.why } : {};
  await session.write<true>([], {
    about: `${noun} ${ref}`,
    facts: [],
    isOnlyLogged: true,
    body: async () => ({
      type: pushEvent(result, noun),
      payload: { publish_id: publishId, ref, new: commit, remote, push: result.result, ...said },
      facts: new Map(),
      answer: true,
    }),
  });
  return result;
}
