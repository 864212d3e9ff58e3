import type { Workspace } from "../coordinator/workspace";
import { parseUlid, type Ulid } from "../kernel/ids";
import { isRefusal } from "../kernel/refusal";
import { CommitReader, READING_LIMITS } from "../objects/commits";
import type { Git, GitOptions } from "../platform/git";
import { isLedgerOn, openLedger } from "./open";
import { type ClaimRecord, readClaim } from "./record";
import { isUnreachable } from "./remote";
import { lapse } from "./rules";

/** A lease that a claim's history speaks of. */
export interface ClaimedLease {
  readonly key: string;
  readonly token: number;
  readonly agentId: string;
  readonly grantedAtMs: number;
  endsAtMs: number | null;
}

/** What the claims on a remote can testify about commits: who held which issue when, and who holds it now. */
export interface ClaimTestimony {
  readonly witness: {
    lease(leaseId: string): ClaimedLease | null;
    /** Contents of issues are not among what claims know. */
    written(issueId: string, digest: string): null;
  };
  readonly held: ReadonlyMap<string, { readonly agentId: string; readonly leaseId: string }>;
}

type Place = Pick<GitOptions, "cwd" | "env">;

/** Every grant and every beat of every claim is one; beyond this it cannot be told in time. */
const MOST_RECORDS = 500_000;

/** Reads the whole history of every claim ref there; null where there is none, and nobody can testify. */
export async function claimTestimony(
  git: Git,
  place: Place,
  prefix: string,
  nowMs: number,
): Promise<ClaimTestimony | null> {
  const reader = new CommitReader(git, place, { ...READING_LIMITS, commits: MOST_RECORDS });
  const records = await reader.read(await reader.list({ names: [], options: [`--glob=${prefix}*`] }));
  if (records.length === 0) return null;
  const leases = new Map<string, ClaimedLease>();
  const held = new Map<string, { agentId: string; leaseId: string }>();
  // Newest first: the first record of an issue is what stands.
  const seen = new Set<Ulid>();
  for (const { message } of records.reverse()) {
    const record = recordIn(message);
    if (record === null) continue;
    if (!seen.has(record.issueId) && record.isHeld && lapse(record, nowMs, LENIENT) === null)
      held.set(record.issueId, { agentId: record.agentId, leaseId: record.leaseId });
    seen.add(record.issueId);
    learn(leases, record);
  }
  return { witness: { lease: (id) => leases.get(id) ?? null, written: () => null }, held };
}

/** A server has no settings of its own: what has run out has run out, and what has no expiry stands. */
const LENIENT = { skewMs: 0, timeoutMs: null, ttlMs: 0 };

function recordIn(message: string): ClaimRecord | null {
  const line = message.trimEnd().split("\n").at(-1) ?? "";
  const id = /"issue_id":"([0-9A-Z]{26})"/.exec(line)?.[1];
  const parsed = id === undefined ? null : parseUlid(id);
  if (parsed === null || isRefusal(parsed)) return null;
  const reading = readClaim(parsed, message);
  return "record" in reading ? reading.record : null;
}

/** Of one lease's records the last one says when it ended. */
function learn(leases: Map<string, ClaimedLease>, record: ClaimRecord): void {
  const endsAtMs = record.ended?.atMs ?? record.expiresAtMs;
  const known = leases.get(record.leaseId);
  if (known !== undefined) return;
  leases.set(record.leaseId, {
    key: `issue:${record.issueId}`,
    token: record.token,
    agentId: record.agentId,
    grantedAtMs: record.acquiredAtMs,
    endsAtMs:
      record.ended === null || record.expiresAtMs === null
        ? endsAtMs
        : Math.min(record.ended.atMs, Math.max(record.expiresAtMs, record.acquiredAtMs)),
  });
}

/** The same for a clone: what its machine has heard of the claims; with `isAsked`, the remote is asked first. */
export async function clonesTestimony(
  workspace: Workspace,
  isAsked: boolean,
): Promise<ClaimTestimony | null> {
  if (!isLedgerOn(workspace)) return null;
  const { surroundings } = workspace;
  const { copy, ledger } = await openLedger(workspace, "cotenant");
  if (isAsked) {
    try {
      await ledger.parts.remote.look("all");
      await ledger.parts.remote.settle();
    } catch (error) {
      if (!isUnreachable(error)) throw error;
      workspace.warnings.push(`claims are as they were last heard of: ${(error as Error).message}`);
    }
  }
  if (!(await copy.exists())) return null;
  const place = { cwd: copy.place.directory, env: { GIT_DIR: copy.place.copy } };
  return claimTestimony(surroundings.git, place, "refs/seen/claims/", surroundings.platform.clock.wallMs());
}
