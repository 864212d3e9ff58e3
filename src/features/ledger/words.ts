import { CotenantError, conflictError, limitError, policyError } from "../../errors/cotenant-error";
import { fencingToken, printable, type Ulid } from "../../kernel/ids";
import { issueKeyOf } from "../../kernel/keys";
import type { Lease } from "../../kernel/lease";
import type { Subject } from "../../kernel/proposals";
import type { ClaimRecord } from "./record";
import { type ClaimRules, freeAtMs } from "./rules";

/** What an onlooker may know of a claim of another machine. */
export function claimSummary(record: ClaimRecord): Record<string, unknown> {
  return {
    lease_id: record.leaseId,
    key: `issue:${record.issueId}`,
    agent_id: record.agentId,
    worktree_id: record.worktreeId,
    expires_at: iso(record.expiresAtMs),
    reason: record.reason,
    host: record.host,
  };
}

/** As a proposal names it. */
export function subjectIn({ issueId, leaseId, agentId, token, host }: ClaimRecord): Subject {
  return {
    leaseId,
    key: issueKeyOf(issueId),
    fencingToken: fencingToken(token),
    agentId,
    host,
  };
}

export function holderOf({ agentId, host }: ClaimRecord): string {
  return host === "" ? agentId : `${agentId} on ${printable(host, 60)}`;
}

export function heldElsewhere(record: ClaimRecord, rules: ClaimRules): CotenantError {
  const until = record.expiresAtMs === null ? "without expiry" : `until ${iso(record.expiresAtMs)}`;
  return conflictError(
    `issue ${record.issueId} is held by ${holderOf(record)}, ${until}`,
    "take other work ('cotenant claim next'); 'cotenant claim status' shows who holds what",
    {
      holders: [claimSummary(record)],
      claimed_by: record.agentId,
      host: record.host,
      free_at: iso(freeAtMs(record, rules)),
    },
  );
}

/** Its secret is on that machine, and so is whoever is to be told. */
export function onlyThere(record: ClaimRecord): CotenantError {
  const { issueId } = record;
  return new CotenantError(
    "E_LOCK_NOT_HELD",
    `issue ${issueId} is held by ${holderOf(record)}: only there it can be handed over`,
    {
      hint: `hand it over there; or a person ends it with 'cotenant claim force-evict ${issueId} --reason <why>', and it can be claimed here`,
      data: { holders: [claimSummary(record)] },
    },
  );
}

/** The remote cannot be asked; what was last heard is that somebody else has it. */
export function heldWhenLastSeen(record: ClaimRecord, cause: CotenantError | null): CotenantError {
  const seen = `issue ${record.issueId} was held by ${holderOf(record)} when the ledger was last seen`;
  if (cause === null)
    return new CotenantError("E_LOCK_CONFLICT", seen, {
      hint: "leave out --offline to ask again",
      data: { holders: [claimSummary(record)], claimed_by: record.agentId },
    });
  return cause.with({ message: `${cause.message}; ${seen}`, data: { last_seen: claimSummary(record) } });
}

export function finishedElsewhere(id: Ulid, record: ClaimRecord): CotenantError {
  const state = record.issue?.isDeleted === true ? "deleted" : record.issue!.state;
  return new CotenantError("E_TERMINAL_STATE", `issue ${id} is ${state} (by ${holderOf(record)})`, {
    hint:
      state === "deleted"
        ? "it stays deleted on all machines: write down anew what is still wanted ('cotenant issue create'), or pick another one ('cotenant query available')"
        : "'cotenant sync' brings it here; pick another one with 'cotenant query available'",
    data: { id, state },
  });
}

export function exhausted(ids: readonly Ulid[], retries: number, why: string): CotenantError {
  return new CotenantError(
    "E_RETRIES_EXHAUSTED",
    `${ids.length === 1 ? `issue ${ids[0]}` : `${ids.length} issues`}: the remote rejected the claim ${retries + 1} times (${printable(why, 200)})`,
    { data: { issue_ids: ids.slice(0, 20), retries, why } },
  );
}

/** `transfer.hideRefs` or `receive.hideRefs`: asking again changes nothing. */
export function isHidden(why: string): boolean {
  return /deny updating a hidden ref/i.test(why);
}

export function hidden(ids: readonly Ulid[], why: string): CotenantError {
  return policyError(
    `${ids.length === 1 ? `issue ${ids[0]}` : `${ids.length} issues`}: the remote hides the refs of claims (${printable(why, 200)})`,
    "on the server, take them out of transfer.hideRefs and receive.hideRefs; or agree on another sync.claims_prefix, such as refs/heads/cotenant-claims/, and run 'cotenant sync --setup-ledger'",
    { issue_ids: ids.slice(0, 20), setting: "sync.claims_prefix" },
  );
}

/** With the reason, where somebody took or ended it by right. */
export function whoHasIt(record: ClaimRecord): string {
  const { isHeld, ended, reason, stoleFrom } = record;
  const why = reason === null ? "" : `: ${printable(reason, 200)}`;
  if (isHeld)
    return stoleFrom.some((from) => from.why === "forced")
      ? `${holderOf(record)} took it over${why}`
      : `${holderOf(record)} has it now`;
  if (ended === null) return "it was ended at the remote";
  const at = `at ${iso(ended.atMs)}`;
  if (ended.how === "evicted") return `it was ended by ${ended.by}${why}`;
  if (ended.how === "stale") return `it was released as stale by ${ended.by}, ${at}`;
  return `it was given back by ${ended.by}, ${at}`;
}

/** Of a claim that was given back: why a lease with this token cannot go on from it. */
export function whoHadIt(record: ClaimRecord, { fencingToken, acquiredAt }: Lease): string {
  const { ended, token } = record;
  return ended !== null && ended.atMs < acquiredAt.wallMs
    ? `${holderOf(record)} had it until ${iso(ended.atMs)}, which was not known here: its token ${token} is not below ${fencingToken}`
    : `${holderOf(record)} had it meanwhile`;
}

/** PROTOCOL 26a: a single record must not use up the tokens of everybody. */
export function outOfReach(id: Ulid, what: string, token: number, highest: number): CotenantError {
  return limitError(
    `${what} of issue ${id} has the fencing token ${token}, out of reach of ${highest}, the highest known here`,
    `nobody's cotenant wrote it: find out who did, and have ${what === "the stamp" ? "the issue's file" : "its ref"} set back to what it was before${what === "the stamp" ? "" : "; then, on each machine: cotenant sync --force-resync --yes"}`,
    { issue_id: id, token, highest_token: highest },
  );
}

export function whyLost(record: ClaimRecord | null): string {
  return record === null ? "it was ended at the remote" : whoHasIt(record);
}

/** Whoever held it here is told so: its token is stale. */
export function lost(id: Ulid, record: ClaimRecord | null): CotenantError {
  return new CotenantError("E_FENCING_MISMATCH", `the claim on issue ${id} is no more: ${whyLost(record)}`, {
    data: {
      key: `issue:${id}`,
      ...(record === null ? {} : { holders: [claimSummary(record)] }),
    },
  });
}

export function iso(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
