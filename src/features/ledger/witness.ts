import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { CommitReader, READING_LIMITS } from "../../git/commits";
import { type Ulid, ulidIn } from "../../kernel/ids";
import type { Git, GitPlace } from "../../platform/git";
import type { KnownLease } from "../hooks/witness";
import { isLedgerOn, openLedger } from "./open";
import { type ClaimRecord, readClaim } from "./record";
import { isUnreachable } from "./remote";
import { lapse } from "./rules";

/** What the claims on a remote can testify about commits: who held which issue when, and who holds it now. */
export interface ClaimTestimony {
  readonly witness: {
    lease(leaseId: string): KnownLease | null;
    /** What was last written under a claim that has ended is named by the record of its end. */
    written(issueId: string, digest: string): "issue" | null;
  };
  readonly held: ReadonlyMap<string, { readonly agentId: string; readonly leaseId: string }>;
}

/** Every grant and every beat of every claim is one; beyond this it cannot be told in time. */
const MOST_RECORDS = 500_000;

/** Reads the whole history of every claim ref there; null where there is none, and nobody can testify. */
export async function claimTestimony(
  git: Git,
  place: GitPlace,
  prefix: string,
  nowMs: number,
): Promise<ClaimTestimony | null> {
  const reader = new CommitReader(git, place, { ...READING_LIMITS, commits: MOST_RECORDS });
  const commits = await reader.read(await reader.list({ names: [], options: [`--glob=${prefix}*`] }));
  if (commits.length === 0) return null;
  const byOid = new Map(commits.map((commit) => [commit.oid, commit]));
  const leases = new Map<string, KnownLease>();
  const held = new Map<string, { agentId: string; leaseId: string }>();
  const written = new Set<string>();
  let walked = 0;
  for (const [issueId, tip] of await claimRefs(git, place, prefix)) {
    // Newest first: the first record is what stands.
    let isTip = true;
    for (let at = byOid.get(tip); at !== undefined; at = byOid.get(at.parents[0] ?? "")) {
      // Refs that share a history were pushed by hand, and could keep a server busy for ever.
      if (++walked > MOST_RECORDS) throw new CotenantError("E_LIMIT", "the claims have too long a history");
      // A ref speaks of its own issue only.
      const reading = readClaim(issueId, at.message);
      if (!("record" in reading)) continue;
      const { record } = reading;
      if (isTip && record.isHeld && lapse(record, nowMs, LENIENT) === null)
        held.set(issueId, { agentId: record.agentId, leaseId: record.leaseId });
      isTip = false;
      learn(leases, record);
      for (const digest of record.written) written.add(`${issueId} ${digest}`);
    }
  }
  return {
    witness: {
      lease: (id) => leases.get(id) ?? null,
      written: (issueId, digest) => (written.has(`${issueId} ${digest}`) ? "issue" : null),
    },
    held,
  };
}

async function claimRefs(git: Git, place: GitPlace, prefix: string): Promise<[Ulid, string][]> {
  const { status, stdout, stderr } = await git.run(
    ["for-each-ref", "--format=%(objectname) %(refname)", prefix],
    place,
  );
  if (status !== 0) throw new CotenantError("E_GIT", `Git cannot list the claims: ${stderr.trim()}`);
  return new TextDecoder()
    .decode(stdout)
    .split("\n")
    .flatMap((line): [Ulid, string][] => {
      const [oid = "", ref = ""] = line.split(" ");
      const id = ulidIn(ref.slice(prefix.length));
      return id === null || ref !== prefix + id ? [] : [[id, oid]];
    });
}

/** A server has no settings of its own: what has run out has run out, and what has no expiry stands. */
const LENIENT = { skewMs: 0, timeoutMs: null, ttlMs: 0 };

/** Of one lease's records the last one says when it ended. */
function learn(leases: Map<string, KnownLease>, record: ClaimRecord): void {
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
  const { copy, ledger } = await openLedger(workspace);
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
