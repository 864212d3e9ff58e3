import { CotenantError, errorFrom } from "../errors/cotenant-error";
import type { Actor } from "../kernel/commands";
import type { Ulid } from "../kernel/ids";
import { isGiven, mayEvict } from "../kernel/policy";
import { needsReason, notAllowedToEvict } from "../kernel/words";
import { recordAt } from "./claiming";
import type { Ledger } from "./ledger";
import type { ClaimRecord } from "./record";
import { updateTo } from "./remote";
import { lapse, tombstone } from "./rules";
import { claimSummary } from "./words";

/** Ends claims at the remote, whosever they are: a live one of another machine takes the right to evict. */
export async function evictClaims(
  ledger: Ledger,
  actor: Actor,
  ids: readonly Ulid[],
  reason: string | null,
): Promise<ClaimRecord[]> {
  if (!isGiven(reason)) throw errorFrom(needsReason("ending somebody's lease"));
  const { remote, rules, policy } = ledger.parts;
  const look = await ledger.look(actor, ids);
  const cloneId = await ledger.cloneId(actor);
  const held = [...look.claims.values()].flatMap((ref) => {
    const record = recordAt(ref);
    return record?.isHeld === true ? [{ ref, record }] : [];
  });
  const isLive = held.some(
    ({ record }) => record.cloneId !== cloneId && lapse(record, ledger.nowMs, rules) === null,
  );
  if (isLive && !mayEvict(actor.agentId, policy)) throw errorFrom(notAllowedToEvict(actor.agentId, policy));
  const updates = held.map(({ ref, record }) => {
    const ended = { how: "evicted", by: actor.agentId, atMs: ledger.nowMs } as const;
    return updateTo(tombstone(record, ended, null, { reason }), ref.oid);
  });
  if (updates.length === 0) return [];
  const outcomes = await ledger.push(actor, updates, false);
  const rejected = outcomes.find((outcome) => outcome.kind !== "done");
  if (rejected !== undefined)
    throw new CotenantError(
      "E_RETRIES_EXHAUSTED",
      `the claim changed while it was to be ended: ${"why" in rejected ? rejected.why : ""}`,
      { hint: "look at it again: 'cotenant claim status'" },
    );
  await ledger.forget(
    actor,
    updates.map(({ issueId, record }) => ({ issueId, leaseId: record.leaseId })),
  );
  await ledger.write(actor, "sync.evicted", ids, new Map(), {
    claims: updates.map(({ record }) => claimSummary(record)),
    reason,
  });
  await remote.settle();
  return held.map(({ record }) => record);
}
