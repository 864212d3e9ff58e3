import type { Workspace } from "../coordinator/workspace";
import { printable } from "../kernel/ids";
import { giveBacks } from "../ledger/confirmations";
import { contradictionWords } from "../ledger/data/merge";
import { type Examined, examineLedger } from "../ledger/examine";
import type { OpenLedger } from "../ledger/open";
import type { Conflict, Reconciled } from "../ledger/reconcile";
import { offlineJson } from "../ledger/state";
import type { Synced } from "../ledger/syncing";
import { withoutPassword } from "../ledger/transport";
import { iso } from "../ledger/words";
import type { Context, Output } from "./command";
import { count } from "./render";

/** What every answer of `sync` begins with. */
export function placeJson({ copy, branch }: OpenLedger): Record<string, unknown> {
  const { remote, url } = copy.transport;
  return { remote, url: withoutPassword(url), branch, directory: copy.place.directory };
}

export function progressOn(context: Context): (done: number, all: number) => void {
  return (done, all) => {
    if (!context.quiet && all > 20) context.note(`settling claims: ${done} of ${all}`);
  };
}

export function syncedOutput(open: OpenLedger, synced: Synced): Output {
  const { contradictions, unreadable, kept } = synced;
  const lines = [
    `${count(synced.pushed.length, "issue")} sent, ${count(synced.written.length, "issue")} received, ${count(synced.claims, "claim")} seen`,
    ...reconciledLines(synced.reconciled),
    ...synced.stale.map(
      ({ issueId, agentId }) => `released the stale claim of ${agentId} on issue ${issueId}`,
    ),
    ...contradictions.flatMap(({ id, fields }) => [
      `issue ${id} was changed on two machines at once:`,
      ...fields.map((field) => `  ${contradictionWords(field)}`),
    ]),
    ...kept.map((id) => `issue ${id} was left as it is here: it has changes that are not committed`),
    ...unreadable.map(({ id, why }) => `issue ${id} was passed over: ${printable(why, 200)}`),
  ];
  return {
    data: {
      action: "ledger-only",
      ...placeJson(open),
      head: synced.head,
      pushed: synced.pushed,
      written: synced.written,
      kept,
      contradictions: contradictions.map(({ id, fields }) => ({
        issue_id: id,
        fields: fields.map(({ field, kept: stands, other }) => ({
          field,
          kept: stands ?? null,
          other: other ?? null,
        })),
      })),
      unreadable: unreadable.map(({ id, why }) => ({ issue_id: id, why })),
      stale_released: synced.stale.map(({ issueId, agentId }) => ({ issue_id: issueId, agent_id: agentId })),
      claims: synced.claims,
      retries: synced.retries,
      ...reconciledJson({
        ...synced.reconciled,
        withdrawn: [...synced.reconciled.withdrawn, ...synced.orphans],
      }),
    },
    text: lines.join("\n"),
    exit: synced.reconciled.conflicts.length === 0 ? 0 : 1,
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
    pending: reconciled.pending.map(({ issueId }) => issueId),
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

/** What to do about one, besides reading what the other has done. */
function nextAfter({ issueId, record }: Conflict): string {
  if (record === null) return "take other work: cotenant claim next";
  return record.isHeld
    ? `take other work, or wait for it: cotenant claim acquire ${issueId} --wait --timeout 300`
    : `look at what was done meanwhile, and claim it again: cotenant claim acquire ${issueId}`;
}

export function reconciledLines({ confirmed, conflicts, withdrawn, pending }: Reconciled): string[] {
  return [
    ...confirmed.map(
      ({ issueId, lease }) => `confirmed: issue ${issueId} for ${lease.agentId}, token ${lease.fencingToken}`,
    ),
    ...conflicts.flatMap((conflict) => [
      `conflict: issue ${conflict.issueId} is not ${conflict.agentId}'s any more: ${printable(conflict.why, 200)}`,
      `  next: ${nextAfter(conflict)}`,
    ]),
    ...withdrawn.map((id) => `given back: issue ${id}`),
    ...pending.map(
      ({ issueId }) => `still provisional: issue ${issueId} (the remote rejected it; run it again)`,
    ),
  ];
}

/** How things stand, and what is open. The remote is looked at; nothing is changed. */
export async function statusOutput(open: OpenLedger, workspace: Workspace): Promise<Output> {
  const { state, copy, remote, ledger } = open;
  const reading = await state.read();
  if (reading.warning !== null) workspace.warnings.push(reading.warning);
  const known = reading.state;
  const isSetUp = (await copy.exists()) && (await remote.branchSeen()) !== null;
  const head = isSetUp ? await remote.branchSeen() : null;
  const isValid =
    isSetUp && known.isValid && (known.ledgerHead === null || (await hasCommit(open, known.ledgerHead)));
  const { isOnline, ledger: standing, why } = await examineLedger(copy, remote);
  const problem = isOnline && standing !== "rewritten" ? null : why;
  const others = isSetUp ? await countSeen(open) : 0;
  const held = (await workspace.coordinator.list({ kinds: ["issue"] })).map(({ lease }) => lease);
  const waiting = giveBacks(await ledger.confirmations("all"), held, ledger.nowMs);
  const lines = [
    `${copy.transport.remote} (${withoutPassword(copy.transport.url)}), branch ${open.branch}: ${isOnline ? "reachable" : why}`,
    ...(isSetUp ? [LEDGER_WORDS[standing](why)] : []),
    `copy ${copy.place.directory}: ${isSetUp ? (isValid ? "whole" : "to be fetched again by the next sync") : "not set up yet; run 'cotenant sync --setup-ledger'"}`,
    `last synced ${known.lastPullAt ?? "never"}, last pushed ${known.lastPushAt ?? "never"}`,
    ...known.offlineClaims.map(
      (claim) =>
        `provisional: issue ${claim.issueId} for ${claim.agentId}, since ${claim.claimedAt} in ${claim.clone}`,
    ),
    ...waiting.map(
      ({ issueId, expiresAtMs }) =>
        `waits to be given back: issue ${issueId}; others may see it claimed ${expiresAtMs === null ? "without end" : `until ${iso(expiresAtMs)}`}`,
    ),
    ...(known.offlineClaims.length + waiting.length === 0
      ? ["nothing waits to be confirmed or given back"]
      : []),
  ];
  return {
    data: {
      action: "status",
      ...placeJson(open),
      schema_version: 1,
      set_up: isSetUp,
      valid: isValid,
      online: isOnline,
      ledger: standing,
      problem,
      ledger_head: head,
      last_pull_at: known.lastPullAt,
      last_push_at: known.lastPushAt,
      claims: others,
      offline_claims: known.offlineClaims.map(offlineJson),
      give_backs: waiting.map(({ issueId, leaseId, expiresAtMs }) => ({
        issue_id: issueId,
        lease_id: leaseId,
        expires_at: iso(expiresAtMs),
      })),
      mode: ledger.parts.offlineMode,
    },
    text: lines.join("\n"),
  };
}

const LEDGER_WORDS: Readonly<Record<Examined["ledger"], (why: string | null) => string>> = {
  whole: () => "ledger: goes on from what this machine has seen",
  rewritten: (why) =>
    `ledger: ${why}; find out who did it; 'cotenant sync --force-resync' says what accepting it would mean`,
  "not looked": () => "ledger: not looked, the remote is unreachable",
};

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
