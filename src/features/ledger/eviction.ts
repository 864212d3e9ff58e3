import { errorFrom, retriesError } from "../../errors/cotenant-error";
import type { Actor } from "../../kernel/commands";
import type { FactName, FactRecord } from "../../kernel/facts";
import type { Ulid } from "../../kernel/ids";
import { isGiven, mayEvict, needsOthers } from "../../kernel/policy";
import {
  countingApprovals,
  isAgreed,
  type Proposal,
  proposalFrom,
  proposalName,
} from "../../kernel/proposals";
import { needsApproval, needsReason, notAllowedToEvict } from "../../kernel/words";
import { presentOn } from "../../platform/present";
import { recordAt } from "./claim-attempt";
import type { Ledger } from "./ledger";
import type { ClaimRecord } from "./record";
import { updateTo } from "./remote";
import { lapse, tombstone } from "./rules";
import { claimSummary, subjectIn } from "./words";

/** Ends claims at the remote, whosever they are: a live one of another machine takes the right to evict. */
export async function evictClaims(
  ledger: Ledger,
  actor: Actor,
  ids: readonly Ulid[],
  reason: string | null,
  proposalId?: Ulid,
): Promise<ClaimRecord[]> {
  if (!isGiven(reason)) throw errorFrom(needsReason("ending somebody's lease"));
  const { remote, rules, policy } = ledger.parts;
  const look = await ledger.look(actor, ids);
  const cloneId = await ledger.cloneId(actor);
  const held = [...look.claims.values()].flatMap((ref) => {
    const record = recordAt(ref);
    return record?.isHeld === true ? [{ ref, record }] : [];
  });
  const live = held
    .map(({ record }) => record)
    .filter((record) => record.cloneId !== cloneId && lapse(record, ledger.nowMs, rules) === null);
  if (live.length > 0 && !mayEvict(actor.agentId, policy))
    throw errorFrom(notAllowedToEvict(actor.agentId, policy));
  const approval = await requireAgreed(ledger, actor, live, proposalId);
  const updates = held.map(({ ref, record }) => {
    const ended = { how: "evicted", by: actor.agentId, atMs: ledger.nowMs } as const;
    return updateTo(tombstone(record, ended, null, { reason }), ref.oid);
  });
  if (updates.length === 0) return [];
  const outcomes = await ledger.push(actor, updates, false);
  const rejected = outcomes.find((outcome) => outcome.kind !== "done");
  if (rejected !== undefined)
    throw retriesError(
      `the claim changed while it was to be ended: ${"why" in rejected ? rejected.why : ""}`,
      "look at it again: 'cotenant claim status'",
    );
  await ledger.forget(
    actor,
    updates.map(({ issueId, record }) => ({ issueId, leaseId: record.leaseId })),
  );
  const used = new Map(approval === null ? [] : [[proposalName(approval.id), null] as const]);
  await ledger.write(actor, "sync.evicted", ids, used, {
    claims: updates.map(({ record }) => claimSummary(record)),
    reason,
    ...(approval === null
      ? {}
      : {
          proposal_id: approval.id,
          proposed_by: approval.proposedBy,
          approved_by: countingApprovals(approval, policy),
        }),
  });
  await remote.settle();
  return held.map(({ record }) => record);
}

/**
 * Where `policy.approvers` asks for it, others of this clone must have agreed: the proposal is in its log. The proposal that
 * was used; null where none was needed.
 */
async function requireAgreed(
  { parts }: Ledger,
  actor: Actor,
  live: readonly ClaimRecord[],
  proposalId: Ulid | undefined,
): Promise<Proposal | null> {
  const { policy, local, platform } = parts;
  const others = live.filter((record) => needsOthers(record, actor, policy)).map(subjectIn);
  if (others.length === 0) return null;
  const name = proposalId === undefined ? null : proposalName(proposalId);
  const facts = name === null ? new Map<FactName, FactRecord>() : await local.facts({ names: [name] });
  const proposal = name === null ? null : proposalFrom(facts.get(name)?.value);
  const now = presentOn(platform);
  const unagreed = others.filter((subject) => !isAgreed(proposal, subject, now, policy));
  if (unagreed.length > 0) throw errorFrom(needsApproval(unagreed, policy));
  return proposal;
}
