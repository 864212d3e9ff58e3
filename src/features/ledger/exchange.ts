import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import type { Ulid } from "../../kernel/ids";
import { issuesIn } from "../issues/desk";
import { writeBack } from "../issues/write-back";
import { IssueWriter } from "../issues/writer";
import { claimsOf } from "./claim-attempt";
import { DataSync, type SyncResult } from "./data/sync";
import { followUp } from "./follow-up";
import { mending } from "./mending-remote";
import type { OpenLedger } from "./open";
import { type Reconciled, type Released, reconcile, releaseStale, withdrawOrphans } from "./reconcile";
import { unreadableClaim } from "./record";

export interface Synced extends SyncResult {
  readonly reconciled: Reconciled;
  readonly stale: readonly Released[];
  readonly orphans: readonly Ulid[];
  /** Claims at the remote, tombstones included. */
  readonly claims: number;
}

/** Everything that one contact with the ledger can settle: claims first, then data. */
export async function syncLedger(
  open: OpenLedger,
  workspace: Workspace,
  session: Session,
  onProgress: (done: number, all: number) => void,
  /** Which issues are brought into the worktree; null: every one. */
  only: ReadonlySet<Ulid> | null = null,
): Promise<Synced> {
  const warn = (warning: string) => void workspace.warnings.push(warning);
  return mending(open.copy, warn, () => syncOnce(open, workspace, session, onProgress, only));
}

async function syncOnce(
  open: OpenLedger,
  workspace: Workspace,
  session: Session,
  onProgress: (done: number, all: number) => void,
  only: ReadonlySet<Ulid> | null,
): Promise<Synced> {
  const { ledger, remote, state } = open;
  const { actor } = session;
  const look = await ledger.look(actor, "all");
  for (const [id, { reading }] of look.claims)
    if (!("record" in reading)) workspace.warnings.push(unreadableClaim(id, reading).message);
  const stale = await releaseStale(ledger, actor, look);
  const orphans = await withdrawOrphans(ledger, actor, look);
  const reconciled = await reconcile(ledger, actor, { most: null, onProgress, look });
  await beat(open, session);
  await ledger.parts.remote.settle();
  const data = await exchange(open, workspace, session, stale, only);
  await remote.settle();
  const now = new Date(ledger.nowMs).toISOString();
  await state.update((before) => ({
    ...before,
    lastPullAt: now,
    lastPushAt: data.pushed.length > 0 ? now : before.lastPushAt,
    ledgerHead: data.head,
    isValid: true,
  }));
  await tidyCopy(open);
  return { ...data, reconciled, stale, orphans, claims: look.claims.size };
}

/** Data both ways; and again with what a stale claim left written, which can be told only with what the branch has. */
async function exchange(
  open: OpenLedger,
  workspace: Workspace,
  session: Session,
  stale: readonly Released[],
  only: ReadonlySet<Ulid> | null,
): Promise<SyncResult> {
  const first = await new DataSync(open, workspace, session, only).run();
  if (!(await putBackStale(workspace, session, stale))) return first;
  const second = await new DataSync(open, workspace, session, only).run();
  const both = (one: readonly Ulid[], other: readonly Ulid[]) => [...new Set([...one, ...other])];
  return {
    ...second,
    pushed: both(first.pushed, second.pushed),
    written: both(first.written, second.written),
    retries: first.retries + second.retries,
  };
}

/** Where it was written, an issue is ready again and nobody's. False where nothing had to be changed. */
async function putBackStale(
  workspace: Workspace,
  session: Session,
  stale: readonly Released[],
): Promise<boolean> {
  let hasChanged = false;
  for (const { issueId, agentId } of stale) {
    const reader = await issuesIn(workspace);
    const writer = new IssueWriter(reader, session, "off", session.actor.agentId);
    const claim = { id: issueId, holder: agentId };
    const { isChanged, failure } = await writeBack(writer, reader, claim, {});
    if (failure !== null) workspace.warnings.push(failure);
    hasChanged ||= isChanged;
  }
  return hasChanged;
}

/** Signs of life of every claim of this clone that are due. One that was lost is said so by its holder's next command. */
async function beat({ ledger }: OpenLedger, { actor }: Session): Promise<void> {
  const leases = (await ledger.parts.local.list({ kinds: ["issue"] })).map(({ lease }) => lease);
  try {
    await followUp(ledger, actor, claimsOf({ leases }));
  } catch {
    // It is logged as ended, with the reason.
  }
}

/** Small objects become one pack now and then; nobody else does it there. */
async function tidyCopy({ copy, remote }: OpenLedger): Promise<void> {
  try {
    await remote.forgetOldLooks();
    await copy.run(["-c", "gc.auto=2000", "-c", "gc.autoDetach=false", "gc", "--auto", "--quiet"]);
  } catch {
    // There is another time.
  }
}
