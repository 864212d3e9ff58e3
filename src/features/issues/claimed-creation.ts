import { makeUlid, type Ulid, ulidTimeMs } from "../../kernel/ids";
import type { Platform } from "../../platform/platform";
import type { Issue } from "./model";

/**
 * An issue and its claim, as one: the claim comes first, because it may be refused, and nobody can know the new id yet.
 * Whoever dies in between leaves a claim that runs out, and no issue.
 */
export async function createClaimed<C>(steps: {
  readonly claim: () => Promise<C>;
  readonly create: () => Promise<Issue>;
  readonly giveBack: () => Promise<unknown>;
}): Promise<{ readonly claimed: C; readonly issue: Issue }> {
  const claimed = await steps.claim();
  try {
    return { claimed, issue: await steps.create() };
  } catch (error) {
    // Why there is no issue is what has to be said.
    await steps.giveBack().catch(() => {});
    throw error;
  }
}

/** The id of the issue that a request makes: the same one however often it is asked for. */
export function idForRequest({ digest }: Pick<Platform, "digest">, requestId: Ulid): Ulid {
  const hex = digest.sha256(`issue of request ${requestId}`);
  const random = Uint8Array.from({ length: 10 }, (_, at) =>
    Number.parseInt(hex.slice(at * 2, at * 2 + 2), 16),
  );
  return makeUlid(ulidTimeMs(requestId), random);
}
