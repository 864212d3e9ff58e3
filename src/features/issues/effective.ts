import type { Coordinator, LeaseStatus } from "../../coordinator/contract";
import { factId } from "../../kernel/facts";
import { type Ulid, ulidIn } from "../../kernel/ids";
import { issueOf } from "../../kernel/keys";
import { LEFT_ISSUE, type Leaver, leaverFrom, leaverUnder } from "../../kernel/left-issues";
import { type IssueState, isTerminal } from "./model";
import type { FoundIssue } from "./resolve";
import type { WrittenStamp } from "./stamps";

/** Who works on issues, as of one look at the leases. */
export interface Workers {
  /** Valid claims of this clone, by issue. */
  readonly claims: ReadonlyMap<Ulid, LeaseStatus>;
  /** Who had claims of this clone that have ended without a release, and that nobody has taken over since. */
  readonly leavers: ReadonlyMap<Ulid, Leaver>;
  /** What other machines hold, or have finished. */
  readonly elsewhere: ReadonlyMap<Ulid, Elsewhere>;
  /** False outside Git: nobody can claim anything there, and what is written is all that counts. */
  readonly canClaim: boolean;
}

/** What was heard of an issue on another machine. */
export interface Elsewhere {
  /** Who holds it there; null: nobody any more. */
  readonly agentId: string | null;
  /** With this version it was finished there; null: it was not. */
  readonly finishedAtVersion: number | null;
}

/** Of what a ledger has heard of: who holds what elsewhere, and what is over there. Null: there is none. */
export function elsewhereIn(
  heard: {
    readonly others: ReadonlyMap<Ulid, { readonly agentId: string }>;
    readonly over: ReadonlyMap<Ulid, { readonly issue: { readonly version: number } | null }>;
  } | null,
): Map<Ulid, Elsewhere> {
  const elsewhere = new Map<Ulid, Elsewhere>();
  for (const [id, { issue }] of heard?.over ?? [])
    elsewhere.set(id, { agentId: null, finishedAtVersion: issue?.version ?? 0 });
  for (const [id, { agentId }] of heard?.others ?? [])
    elsewhere.set(id, { agentId, finishedAtVersion: null });
  return elsewhere;
}

/** Outside Git. */
export const NO_WORKERS: Workers = {
  claims: new Map(),
  leavers: new Map(),
  elsewhere: new Map(),
  canClaim: false,
};

/** One look at the leases, however many issues there are. */
export async function workersOf(
  coordinator: Pick<Coordinator, "list" | "facts">,
  elsewhere: Workers["elsewhere"] = new Map(),
): Promise<Workers> {
  return workersAmong(coordinator, await coordinator.list({ kinds: ["issue"], lapsed: true }), elsewhere);
}

/** The same, by leases that were read before. */
export async function workersAmong(
  coordinator: Pick<Coordinator, "facts">,
  statuses: readonly LeaseStatus[],
  elsewhere: Workers["elsewhere"] = new Map(),
): Promise<Workers> {
  const claims = new Map<Ulid, LeaseStatus>();
  const leavers = new Map<Ulid, Leaver>();
  for (const [name, { value }] of await coordinator.facts({ kinds: [LEFT_ISSUE] })) {
    const id = ulidIn(factId(name));
    if (id !== null) leavers.set(id, leaverFrom(value));
  }
  for (const status of statuses) {
    const { lease, standing } = status;
    if (!lease.key.startsWith("issue:")) continue;
    const id = issueOf(lease.key);
    if (standing === "valid") claims.set(id, status);
    else leavers.set(id, leaverUnder(lease, standing));
  }
  return { claims, leavers, elsewhere, canClaim: true };
}

/** Who has claimed it, here or on another machine. */
export function claimantOf({ claims, elsewhere }: Workers, id: Ulid): string | null {
  return claims.get(id)?.lease.agentId ?? elsewhere.get(id)?.agentId ?? null;
}

/** What counts of an issue, as opposed to what is written in it. */
export interface Effective {
  readonly state: IssueState;
  /** Abandoned: somebody was at it, whose claim has ended without a release. It is free to take. */
  readonly isAbandoned: boolean;
}

/**
 * An issue with a valid claim is in progress, and stops being so with the claim, both without a write. This is
 * the only place that says so; nothing of it is cached, because claims end by time.
 *
 * What is over stays over, claimed or not, and what waits for its gates still does.
 */
export function effectiveState(
  workers: Workers,
  id: Ulid,
  written: { readonly state: IssueState; readonly version: number },
): Effective {
  const { state } = written;
  if (!workers.canClaim || isTerminal(written) || state === "gated") return { state, isAbandoned: false };
  if (claimantOf(workers, id) !== null) return { state: "in_progress", isAbandoned: false };
  const isAbandoned = state === "in_progress" || (state === "ready" && workers.leavers.has(id));
  if (!isAbandoned || isFinishedElsewhere(workers, id, written.version)) return { state, isAbandoned: false };
  return { state: "ready", isAbandoned: true };
}

/** Whoever has brought it back here has a newer version. */
export function isFinishedElsewhere({ elsewhere }: Workers, id: Ulid, version: number): boolean {
  const heard = elsewhere.get(id);
  return heard?.agentId === null && heard.finishedAtVersion !== null && version < heard.finishedAtVersion;
}

/** Whoever has claimed it. The assignment of whoever left it has ended with their claim; one to somebody else has not. */
export function effectiveAssignee(
  workers: Workers,
  id: Ulid,
  written: { readonly assignee: string | null; readonly updatedBy: string },
  { state, isAbandoned }: Effective,
): string | null {
  const { assignee, updatedBy } = written;
  if (isTerminal({ state })) return assignee;
  const claimant = claimantOf(workers, id);
  if (claimant !== null) return claimant;
  const leaver = workers.leavers.get(id)?.agentId ?? updatedBy;
  return isAbandoned && assignee === leaver ? null : assignee;
}

/** The same of an issue that was read whole. */
export function effective(
  workers: Workers,
  { id, state, issue }: FoundIssue,
): Effective & { readonly assignee: string | null } {
  const counted = effectiveState(workers, id, { state, version: issue.stamp.version });
  const written = { assignee: issue.assignee, updatedBy: issue.updated_by };
  return { ...counted, assignee: effectiveAssignee(workers, id, written, counted) };
}

/** By the claim that ended, while it is known; else by the last write of the issue. */
export function leaverOf(
  { leavers }: Workers,
  id: Ulid,
  stamp: WrittenStamp | null,
  written: { readonly updatedBy: string; readonly updatedAt: string },
): Leaver {
  const leaver = leavers.get(id);
  if (leaver !== undefined) return leaver;
  if (stamp !== null && stamp.worktreeId !== "")
    return { agentId: stamp.agentId, at: stamp.at, worktreeId: stamp.worktreeId, branch: null };
  return { agentId: written.updatedBy, at: written.updatedAt, worktreeId: null, branch: null };
}
