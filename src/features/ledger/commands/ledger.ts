import { columns, leaseTable } from "../../../cli/terminal/render";
import type { Terminal } from "../../../cli/terminal/terminal";
import type { Grant, LeaseStatus, LedgerSay } from "../../../coordinator/contract";
import type { Workspace } from "../../../coordinator/workspace";
import { printable } from "../../../kernel/ids";
import { shownKey } from "../../../kernel/landing-right";
import type { ClaimRecord } from "../record";
import type { ClaimsView } from "../view";

/** Beside what a change of claims answers: how it went beyond this clone. Nothing where there is no ledger. */
export function sayJson(say: LedgerSay | undefined): Record<string, unknown> {
  if (say === undefined) return {};
  return {
    claimed_by: say.claimedBy,
    retries: say.retries,
    offline: say.isOffline,
    degraded: say.isDegraded,
  };
}

/** A claim that was held and confirmed already needed no word from the remote: its answer says so all the same. */
export function withLedger(workspace: Workspace, grant: Grant): Grant {
  const claim = grant.leases.find(({ key }) => key.startsWith("issue:"));
  if (grant.ledger !== undefined || claim === undefined) return grant;
  if (workspace.config.values["sync.ledger_branch"] === null) return grant;
  const say = { claimedBy: claim.agentId, retries: 0, isOffline: false, isDegraded: false, warnings: [] };
  return { ...grant, ledger: say };
}

/** What people should hear of it. */
export function tellSay(workspace: Workspace, say: LedgerSay | undefined): void {
  if (say !== undefined) workspace.warnings.push(...say.warnings);
}

/** Claims of other machines, as they were last heard of. */
export function elsewhereJson(view: ClaimsView | null): Record<string, unknown> {
  return view === null
    ? {}
    : { elsewhere: [...view.others.values()].map(recordJson), elsewhere_as_of: view.asOf };
}

function recordJson(record: ClaimRecord): Record<string, unknown> {
  return {
    issue_id: record.issueId,
    lease_id: record.leaseId,
    agent_id: record.agentId,
    worktree_id: record.worktreeId,
    host: record.host,
    fencing_token: record.token,
    acquired_at: new Date(record.acquiredAtMs).toISOString(),
    last_beat: new Date(record.beatAtMs).toISOString(),
    expires_at: record.expiresAtMs === null ? null : new Date(record.expiresAtMs).toISOString(),
  };
}

export function elsewhereLines(terminal: Terminal, view: ClaimsView | null): string[] {
  if (view === null || view.others.size === 0) return [];
  const rows = [...view.others.values()].map((record) => [
    shownKey(`issue:${record.issueId}`),
    record.agentId,
    printable(record.host, 40),
    record.expiresAtMs === null ? "without expiry" : `until ${new Date(record.expiresAtMs).toISOString()}`,
    `#${record.token}`,
  ]);
  return [columns(terminal, ["ON OTHER MACHINES", "HOLDER", "HOST", "TIME", "TOKEN"], rows)];
}

export function claimsText(
  terminal: Terminal,
  statuses: readonly LeaseStatus[],
  me: Parameters<typeof leaseTable>[2],
  view: ClaimsView | null,
  { titles, isOwnOnly = false }: { titles?: ReadonlyMap<string, string>; isOwnOnly?: boolean } = {},
): string {
  const others = elsewhereLines(terminal, view);
  const own = statuses.length > 0 ? [leaseTable(terminal, statuses, me, view, titles)] : [];
  const all = own.length + others.length === 0 ? ["no claims"] : [...own, ...others];
  return [...all, ...(view === null || isOwnOnly ? [] : [asOfLine(view)])].join("\n");
}

/** Reads ask nobody: how old what they show of other machines is belongs to the answer. */
function asOfLine({ asOf }: ClaimsView): string {
  return asOf === null
    ? "claims of other machines were never read here; 'cotenant status' says what is missing"
    : `claims of other machines as of ${asOf}, and of those that were asked for since; anew: cotenant sync`;
}
