import type { Context, Output } from "../../../cli/grammar/command";
import type { Workspace } from "../../../coordinator/workspace";
import { printable } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import { contradictionWords } from "../data/merge";
import type { Examined } from "../examine";
import type { OpenLedger } from "../open";
import type { Conflict, Reconciled } from "../reconcile";
import { standingJson, standingOf, syncedJson } from "../report";
import type { Synced } from "../syncing";
import { withoutPassword } from "../transport";
import { iso } from "../words";

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
    data: syncedJson(open, synced),
    text: lines.join("\n"),
    exit: synced.reconciled.conflicts.length === 0 ? 0 : 1,
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
  const standing = await standingOf(open, workspace);
  const { isSetUp, isValid, isOnline, known, waiting, why } = standing;
  if (standing.warning !== null) workspace.warnings.push(standing.warning);
  const { copy } = open;
  const lines = [
    `${copy.transport.remote} (${withoutPassword(copy.transport.url)}), branch ${open.branch}: ${isOnline ? "reachable" : why}`,
    ...(isSetUp ? [LEDGER_WORDS[standing.ledger](why)] : []),
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
  return { data: standingJson(open, standing), text: lines.join("\n") };
}

const LEDGER_WORDS: Readonly<Record<Examined["ledger"], (why: string | null) => string>> = {
  whole: () => "ledger: goes on from what this machine has seen",
  rewritten: (why) =>
    `ledger: ${why}; find out who did it; 'cotenant sync --force-resync' says what accepting it would mean`,
  "not looked": () => "ledger: not looked, the remote is unreachable",
};
