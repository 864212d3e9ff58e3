import type { Workspace } from "../../coordinator/workspace";
import { giveBacks } from "./confirmations";
import { examineLedger } from "./examine";
import type { Synced } from "./exchange";
import type { LedgerAt, OpenLedger } from "./open";
import type { Conflict, Reconciled } from "./reconcile";
import { idsOf } from "./record";
import { offlineJson } from "./state";
import { iso } from "./words";

type AtLedger<T> = { readonly at: LedgerAt } & T;

export function syncedJson({ at, ...synced }: AtLedger<Synced>): Record<string, unknown> {
  return {
    action: "ledger-only",
    ...at,
    head: synced.head,
    pushed: synced.pushed,
    written: synced.written,
    kept: synced.kept,
    contradictions: synced.contradictions.map(({ id, fields }) => ({
      issue_id: id,
      fields: fields.map(({ field, kept: stands, other }) => ({
        field,
        kept: stands ?? null,
        other: other ?? null,
      })),
    })),
    unreadable: synced.unreadable.map(({ id, why }) => ({ issue_id: id, why })),
    stale_released: synced.stale.map(({ issueId, agentId }) => ({ issue_id: issueId, agent_id: agentId })),
    claims: synced.claims,
    retries: synced.retries,
    ...reconciledJson({
      ...synced.reconciled,
      withdrawn: [...synced.reconciled.withdrawn, ...synced.orphans],
    }),
  };
}

export function reconciledJson(reconciled: Reconciled): Record<string, unknown> {
  return {
    confirmed: reconciled.confirmed.map(({ issueId, lease }) => ({
      issue_id: issueId,
      lease_id: lease.leaseId,
      agent_id: lease.agentId,
      fencing_token: lease.fencingToken,
    })),
    conflicts: reconciled.conflicts.map(conflictJson),
    withdrawn: reconciled.withdrawn,
    pending: idsOf(reconciled.pending),
  };
}

function conflictJson({ issueId, agentId, record, why }: Conflict): Record<string, unknown> {
  return {
    issue_id: issueId,
    agent_id: agentId,
    claimed_by: record?.agentId ?? null,
    host: record?.host ?? null,
    why,
  };
}

/** How things stand, and what is open. The remote is looked at; nothing is changed. */
export async function standingOf(open: OpenLedger, workspace: Workspace) {
  const { state, copy, remote, ledger } = open;
  const { state: known, warning } = await state.read();
  const isSetUp = (await copy.exists()) && (await remote.branchSeen()) !== null;
  const isValid =
    isSetUp && known.isValid && (known.ledgerHead === null || (await hasCommit(open, known.ledgerHead)));
  const { isOnline, ledger: standing, why } = await examineLedger(copy, remote);
  const held = (await workspace.coordinator.list({ kinds: ["issue"] })).map(({ lease }) => lease);
  return {
    known,
    warning,
    isSetUp,
    isValid,
    isOnline,
    ledger: standing,
    why,
    head: isSetUp ? await remote.branchSeen() : null,
    claims: isSetUp ? await countSeen(open) : 0,
    mode: ledger.parts.offlineMode,
    waiting: giveBacks(await ledger.confirmations("all"), held, ledger.nowMs),
  };
}

export type LedgerStanding = Awaited<ReturnType<typeof standingOf>>;

export function standingJson({ at, ...standing }: AtLedger<LedgerStanding>): Record<string, unknown> {
  const { known, isOnline, ledger, why, waiting } = standing;
  return {
    action: "status",
    ...at,
    schema_version: 1,
    set_up: standing.isSetUp,
    valid: standing.isValid,
    online: isOnline,
    ledger,
    problem: isOnline && ledger !== "rewritten" ? null : why,
    ledger_head: standing.head,
    last_pull_at: known.lastPullAt,
    last_push_at: known.lastPushAt,
    claims: standing.claims,
    offline_claims: known.offlineClaims.map(offlineJson),
    give_backs: waiting.map(({ issueId, leaseId, expiresAtMs }) => ({
      issue_id: issueId,
      lease_id: leaseId,
      expires_at: iso(expiresAtMs),
    })),
    mode: standing.mode,
  };
}

async function countSeen({ remote }: OpenLedger): Promise<number> {
  try {
    return (await remote.seen("all")).size;
  } catch {
    // Damaged: the next sync makes it anew.
    return 0;
  }
}

async function hasCommit({ copy }: OpenLedger, oid: string): Promise<boolean> {
  return (
    /^[0-9a-f]{40,64}$/.test(oid) && (await copy.run(["cat-file", "-e", `${oid}^{commit}`])).status === 0
  );
}
