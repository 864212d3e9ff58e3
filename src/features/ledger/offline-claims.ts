import { type CotenantError, conflictError, limitError } from "../../errors/cotenant-error";
import type { Ulid } from "../../kernel/ids";
import type { Claim, Ledger } from "./ledger";
import { idsOf } from "./record";
import { MOST_OFFLINE_CLAIMS, type OfflineClaim } from "./state";
import { iso } from "./words";

/** Two clones on one machine know of each other, whatever the network does. */
export async function claimedByOtherClone(
  ledger: Ledger,
  ids: readonly Ulid[],
): Promise<CotenantError | null> {
  const isAnothers = await anothersOn(ledger, ids);
  const other = (await ledger.parts.book.list()).find(isAnothers);
  return other === undefined ? null : claimedThere(other);
}

/** Whether a claim keeps this clone from these issues. One of a clone that was deleted since will never be confirmed. */
async function anothersOn(ledger: Ledger, ids: readonly Ulid[]): Promise<(claim: OfflineClaim) => boolean> {
  const { book, platform, controlDir } = ledger.parts;
  const gone = new Set<string>();
  for (const { clone } of await book.list())
    if (clone !== controlDir && (await platform.files.stat(clone)) === null) gone.add(clone);
  return ({ clone, issueId, expiresAt }) =>
    clone !== controlDir &&
    !gone.has(clone) &&
    ids.includes(issueId) &&
    (expiresAt === null || Date.parse(expiresAt) > ledger.nowMs);
}

function claimedThere({ issueId, leaseId, agentId, expiresAt, clone }: OfflineClaim): CotenantError {
  return conflictError(
    `issue ${issueId} is claimed offline by ${agentId} in ${clone}`,
    "take other work, or ask there",
    {
      claimed_by: agentId,
      holders: [{ lease_id: leaseId, key: `issue:${issueId}`, agent_id: agentId, expires_at: expiresAt }],
    },
  );
}

/**
 * On the disk before anybody is told of them. Refused here for the last time: of two clones that claim at once, the second
 * sees the first; and there is a limit to what can wait.
 */
export async function noteOffline(ledger: Ledger, claims: readonly Claim[]): Promise<void> {
  const { book, controlDir } = ledger.parts;
  const fresh = claims.map(({ issueId, lease }) => ({
    issueId,
    leaseId: lease.leaseId,
    agentId: lease.agentId,
    token: lease.fencingToken,
    claimedAt: iso(lease.acquiredAt.wallMs)!,
    expiresAt: iso(lease.expiresAt?.wallMs ?? null),
    clone: controlDir,
  }));
  const isAnothers = await anothersOn(ledger, idsOf(claims));
  await book.note(fresh, (noted) => {
    const other = noted.find(isAnothers);
    if (other !== undefined) throw claimedThere(other);
    refuseTooMany(noted, fresh);
  });
}

function refuseTooMany(noted: readonly OfflineClaim[], fresh: readonly OfflineClaim[]): void {
  const added = fresh.filter(
    ({ issueId, clone }) => !noted.some((claim) => claim.issueId === issueId && claim.clone === clone),
  );
  if (noted.length + added.length <= MOST_OFFLINE_CLAIMS) return;
  throw limitError(
    `${noted.length} claims were made offline on this machine; the limit is ${MOST_OFFLINE_CLAIMS}`,
    "confirm them when the remote can be reached: cotenant sync --reconcile",
    { limit: MOST_OFFLINE_CLAIMS, offline_claims: noted.length },
  );
}
