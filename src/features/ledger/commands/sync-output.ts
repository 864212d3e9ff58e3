import type { Output } from "../../../cli/grammar/command";
import { CotenantError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import { contradictionWords } from "../data/merge";
import type { Examined } from "../examine";
import type { SyncAction, SyncAnswer } from "../operations";
import type { Conflict, Reconciled } from "../reconcile";
import { reconciledJson, standingJson, syncedJson } from "../report";
import { iso } from "../words";

type Show<Action extends SyncAction> = (answer: SyncAnswer<Action>) => Output;

const SHOWN: { readonly [Action in SyncAction]: Show<Action> } = {
  "setup-ledger": ({ at, createdBranch, createdCopy, head }) => {
    const what = createdBranch
      ? `made the branch ${at.branch} on ${at.remote}`
      : `the branch ${at.branch} on ${at.remote} is there`;
    return {
      data: {
        action: "setup-ledger",
        ...at,
        created_branch: createdBranch,
        created_copy: createdCopy,
        head,
      },
      text: `${what}\n${createdCopy ? "made" : "found"} this machine's copy: ${at.directory}\n  next: claims are shared from now on; 'cotenant sync' exchanges issues`,
    };
  },
  "ledger-only": (synced) => {
    const { pushed, written, claims, reconciled, stale, contradictions, unreadable, kept } = synced;
    const lines = [
      `${count(pushed.length, "issue")} sent, ${count(written.length, "issue")} received, ${count(claims, "claim")} seen`,
      ...reconciledLines(reconciled),
      ...stale.map(({ issueId, agentId }) => `released the stale claim of ${agentId} on issue ${issueId}`),
      ...contradictions.flatMap(({ id, fields }) => [
        `issue ${id} was changed on two machines at once:`,
        ...fields.map((field) => `  ${contradictionWords(field)}`),
      ]),
      ...kept.map((id) => `issue ${id} was left as it is here: it has changes that are not committed`),
      ...unreadable.map(({ id, why }) => `issue ${id} was passed over: ${printable(why, 200)}`),
    ];
    return {
      data: syncedJson(synced),
      text: lines.join("\n"),
      exit: reconciled.conflicts.length === 0 ? 0 : 1,
    };
  },
  reconcile: ({ at, ...reconciled }) => {
    const lines = reconciledLines(reconciled);
    const data = reconciledJson(reconciled);
    if (reconciled.pending.length > 0)
      throw new CotenantError(
        "E_RETRIES_EXHAUSTED",
        lines.filter((line) => !line.startsWith("  next: ")).join("; "),
        { data },
      );
    return {
      data: { action: "reconcile", ...at, ...data },
      text: lines.length === 0 ? "nothing waits to be confirmed" : lines.join("\n"),
      exit: reconciled.conflicts.length === 0 ? 0 : 1,
    };
  },
  status: (standing) => ({ data: standingJson(standing), text: standingLines(standing).join("\n") }),
  "force-resync": ({ at, backup, snapshotId, head, claims }) => ({
    data: { action: "force-resync", ...at, backup, snapshot_id: snapshotId, head, claims },
    text: [
      `took the remote's ledger as it is: ${count(claims, "claim")}`,
      backup === null ? "there was nothing to back up" : `backup: ${backup}`,
      `this worktree as it is: snapshot ${snapshotId}`,
      "  next: cotenant sync",
    ].join("\n"),
  }),
  "cleanup-ledger": ({ at, backup, removed, isStillOn }) => ({
    data: { action: "cleanup-ledger", ...at, backup, removed },
    text: [
      removed ? "removed this machine's copy" : "there was no copy",
      ...(backup === null ? [] : [`backup: ${backup}`]),
      ...(isStillOn
        ? ["  next: take sync.ledger_branch out of the configuration, or claims go on being shared"]
        : []),
    ].join("\n"),
  }),
};

export function syncOutput<Action extends SyncAction>(action: Action, answer: SyncAnswer<Action>): Output {
  const show: Show<Action> = SHOWN[action];
  return show(answer);
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

function standingLines({ at, ...standing }: SyncAnswer<"status">): string[] {
  const { isSetUp, isValid, isOnline, known, waiting, why } = standing;
  return [
    `${at.remote} (${at.url}), branch ${at.branch}: ${isOnline ? "reachable" : why}`,
    ...(isSetUp ? [LEDGER_WORDS[standing.ledger](why)] : []),
    `copy ${at.directory}: ${isSetUp ? (isValid ? "whole" : "to be fetched again by the next sync") : "not set up yet; run 'cotenant sync --setup-ledger'"}`,
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
}

const LEDGER_WORDS: Readonly<Record<Examined["ledger"], (why: string | null) => string>> = {
  whole: () => "ledger: goes on from what this machine has seen",
  rewritten: (why) =>
    `ledger: ${why}; find out who did it; 'cotenant sync --force-resync' says what accepting it would mean`,
  "not looked": () => "ledger: not looked, the remote is unreachable",
};
