import { CotenantError } from "../errors/cotenant-error";
import type { Ulid } from "../kernel/ids";
import type { Claim, Ledger } from "./ledger";
import { MOST_OFFLINE_CLAIMS } from "./state";
import { iso } from "./words";

/** Two clones on one machine know of each other, whatever the network does; and there is a limit to what can wait. */
export async function refuseForOtherClones(ledger: Ledger, ids: readonly Ulid[]): Promise<void> {
  const { book, controlDir } = ledger.parts;
  const noted = await book.list();
  const other = noted.find(
    (claim) =>
      claim.clone !== controlDir &&
      ids.includes(claim.issueId) &&
      (claim.expiresAt === null || Date.parse(claim.expiresAt) > ledger.nowMs),
  );
  if (other !== undefined) {
    const { issueId, leaseId, agentId, expiresAt, clone } = other;
    throw new CotenantError(
      "E_LOCK_CONFLICT",
      `issue ${issueId} is claimed offline by ${agentId} in ${clone}`,
      {
        hint: "take other work, or ask there",
        data: {
          claimed_by: agentId,
          holders: [{ lease_id: leaseId, key: `issue:${issueId}`, agent_id: agentId, expires_at: expiresAt }],
        },
      },
    );
  }
  const own = new Set(noted.filter(({ clone }) => clone === controlDir).map(({ issueId }) => issueId));
  const fresh = ids.filter((id) => !own.has(id)).length;
  if (noted.length + fresh <= MOST_OFFLINE_CLAIMS) return;
  throw new CotenantError(
    "E_LIMIT",
    `${noted.length} claims were made offline on this machine; the limit is ${MOST_OFFLINE_CLAIMS}`,
    {
      hint: "confirm them when the remote can be reached: cotenant sync --reconcile",
      data: { limit: MOST_OFFLINE_CLAIMS, offline_claims: noted.length },
    },
  );
}

/** On the disk before anybody is told of them. */
export async function noteOffline(ledger: Ledger, claims: readonly Claim[]): Promise<void> {
  const { book, controlDir } = ledger.parts;
  await book.note(
    claims.map(({ issueId, lease }) => ({
      issueId,
      leaseId: lease.leaseId,
      agentId: lease.agentId,
      token: lease.fencingToken,
      claimedAt: iso(lease.acquiredAt.wallMs)!,
      expiresAt: iso(lease.expiresAt?.wallMs ?? null),
      clone: controlDir,
    })),
  );
}
