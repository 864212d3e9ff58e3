import type { LeaseStatus } from "../coordinator/contract";
import type { Session } from "../coordinator/session";
import type { Workspace } from "../coordinator/workspace";
import { issueEdits, keyOf } from "../enforce/commit";
import { issueOf, judgeCommit, type Objection, scopeOf } from "../enforce/commit-rules";
import type { Trailer } from "../enforce/trailers";
import { CotenantError, errorFrom, orThrow } from "../errors/cotenant-error";
import type { Actor } from "../kernel/commands";
import type { Extent } from "../kernel/conflicts";
import { ExtentIndex } from "../kernel/conflicts";
import { printable, type WorktreeId } from "../kernel/ids";
import {
  directoriesAbove,
  dirKey,
  fileKey,
  isPathKey,
  issueKey,
  type LeaseKey,
  pathOf,
  scopeKey,
} from "../kernel/keys";
import { type Lease, sameParty } from "../kernel/lease";
import { gone } from "../kernel/proof";
import { expired } from "../kernel/words";
import type { Leaf } from "../objects/tree-editing";
import { type ClaimsUnder, claimTrailers } from "./claims";
import type { Draft } from "./draft";

/** On what the right to publish the paths rests. */
export interface Coverage {
  /** The caller's own, each of which covers something: proved once more at the commit. */
  readonly leases: readonly Lease[];
  /** What concerns everybody: taken for the time of the publish. */
  readonly scopes: readonly LeaseKey[];
  /** Nobody holds them, and nobody has to: they must be on the branch as they were in the base. */
  readonly optimistic: readonly string[];
  readonly issues: readonly Trailer[];
  /** Claims that other machines know of, and that a push is fenced by. */
  readonly claims: readonly Lease[];
}

export interface CoverageQuestion {
  readonly claims: ClaimsUnder;
  readonly workspace: Workspace;
  readonly session: Session;
  readonly draft: Draft;
  readonly before: ReadonlyMap<string, Leaf>;
  /** Hashes of secrets that the caller shows besides its own. */
  readonly shown: readonly string[];
}

type Rule = "free" | "scope" | "issue" | "path";

/** SPEC §11.2: what covers a path. */
export function ruleFor(path: string): Rule {
  if (path.startsWith(".cotenant/events/")) return "free";
  if (scopeOf(path) !== null) return "scope";
  if (issueOf(path) !== null) return "issue";
  // Comments are only ever added, and need no claim.
  return /^\.cotenant\/issues\/[^/]+\/comments\.jsonl$/.test(path) ? "free" : "path";
}

/** Whose leases the paths are under, or the refusal that names the paths that nobody covers. */
export async function coverageOf(question: CoverageQuestion): Promise<Coverage> {
  const { workspace, session, draft } = question;
  const { actor } = session;
  const paths = [...draft.keys()].filter((path) => ruleFor(path) === "path");
  const keyed = paths.map((path) => ({ path, key: keyOf(workspace, path) ?? orThrow(fileKey(path)) }));
  const found = await workspace.coordinator.overlapping(
    keyed.map(({ key }) => ({ key, reach: "repository", worktreeId: actor.worktreeId })),
  );
  const standing = found.filter(({ standing: how, stale }) => how === "valid" && !stale);
  const { mine, others } = sorted(standing, question);
  const [own, theirs] = [new ExtentIndex(mine), new ExtentIndex(others)];
  const used = new Map<string, Lease>();
  const optimistic: string[] = [];
  const uncovered: Uncovered[] = [];
  const required = workspace.config.values["publish.require_leases"];
  for (const { path, key } of keyed) {
    const extent: Extent = { key, reach: "worktree", worktreeId: actor.worktreeId };
    const lease = own.conflictingWith(extent)[0];
    const holder = theirs.conflictingWith(extent)[0] ?? null;
    if (lease !== undefined) used.set(lease.leaseId, lease);
    else if (holder !== null || required) uncovered.push({ path, key, holder });
    else optimistic.push(path);
  }
  if (uncovered.length > 0) {
    const extents = uncovered.map(
      ({ key }) => ({ key, reach: "worktree", worktreeId: actor.worktreeId }) as const,
    );
    const concerned = new ExtentIndex(extents);
    const about = found.filter(({ lease }) => concerned.conflictingWith(lease).length > 0);
    await refuseFormer(session, about, uncovered[0]!.key);
    refuseUncovered(uncovered);
  }
  const { leases, trailers } = await issueCoverage(question);
  for (const lease of leases) used.set(lease.leaseId, lease);
  const claims = await question.claims.confirmed([...used.values()]);
  // Also those that cover nothing of it: other machines know of nothing else that it was written under.
  const named = new Set(trailers.map(({ leaseId }) => leaseId));
  const issues = [...trailers, ...claimTrailers(claims).filter(({ leaseId }) => !named.has(leaseId))];
  return { leases: [...used.values()], scopes: scopesOf(draft), optimistic, issues, claims };
}

/** Leases of worktree reach cover what is published from their own worktree only. */
function sorted(
  standing: readonly LeaseStatus[],
  { session, shown }: CoverageQuestion,
): { mine: Lease[]; others: Lease[] } {
  const { actor } = session;
  const mine: Lease[] = [];
  const others: Lease[] = [];
  for (const { lease } of standing) {
    const isElsewhere = lease.reach === "worktree" && lease.worktreeId !== actor.worktreeId;
    if (isElsewhere) continue;
    const isShown = lease.secretHash !== null && shown.includes(lease.secretHash);
    (isShown || sameParty(lease, actor) ? mine : others).push(lease);
  }
  return { mine, others };
}

const MOST_NAMED = 20;

interface Uncovered {
  readonly path: string;
  readonly key: LeaseKey;
  readonly holder: Lease | null;
}

/** Who held it, and does not know yet that it is over, hears how it ended. */
async function refuseFormer(session: Session, found: readonly LeaseStatus[], key: LeaseKey): Promise<void> {
  const lapsed = found.find(({ lease, standing }) => standing !== "valid" && sameParty(lease, session.actor));
  if (lapsed !== undefined) throw errorFrom(expired(lapsed.lease.key, lapsed.lease.leaseId));
  const above = directoriesAbove(pathOf(key)).map((directory) => orThrow(dirKey(directory)));
  const [ended] = await session.endings([key, ...above.reverse()]);
  if (ended === undefined) return;
  const endings = new Map([[ended.leaseId, ended]]);
  throw errorFrom(gone({ endings }, { key: ended.key, leaseId: ended.leaseId }));
}

function refuseUncovered(uncovered: readonly Uncovered[]): void {
  const [first] = uncovered;
  if (first === undefined) return;
  const { path, holder } = uncovered.find((one) => one.holder !== null) ?? first;
  const more = uncovered.length === 1 ? "" : ` (and ${uncovered.length - 1} more paths are not covered)`;
  const who = holder === null ? "no lease of yours covers it" : `it is held by ${holder.agentId}`;
  const names = uncovered.slice(0, 5).map((one) => printable(one.path, 200));
  const wanted = uncovered.length > 5 ? "<paths>" : names.join(" ");
  throw new CotenantError("E_PATH_NOT_LEASED", `${printable(path, 200)}: ${who}${more}`, {
    hint:
      holder === null
        ? `lease what you publish, and publish again: cotenant lock acquire ${wanted}`
        : `wait for it: cotenant lock acquire ${printable(path, 200)} --wait --timeout 300`,
    data: {
      paths: uncovered.slice(0, MOST_NAMED).map((one) => ({
        path: printable(one.path, 500),
        holder: one.holder?.agentId ?? null,
        lease_id: one.holder?.leaseId ?? null,
      })),
      count: uncovered.length,
    },
  });
}

function scopesOf(draft: Draft): LeaseKey[] {
  const names = [...draft.keys()].flatMap((path) => scopeOf(path) ?? []);
  return [...new Set(names)].map((name) => orThrow(scopeKey(name)));
}

/** The same rules as for a commit: the claim, or content that was written under it. */
async function issueCoverage(
  question: CoverageQuestion,
): Promise<{ leases: Lease[]; trailers: readonly Trailer[] }> {
  const { workspace, session, draft, before } = question;
  const { actor } = session;
  const changes = [...draft]
    .filter(([path]) => ruleFor(path) === "issue")
    .map(
      ([path, wanted]) =>
        ({
          path,
          status: wanted === null ? "deleted" : before.has(path) ? "changed" : "added",
          oid: wanted?.oid ?? null,
        }) as const,
    );
  if (changes.length === 0) return { leases: [], trailers: [] };
  const { agentId, sessionId, worktreeId } = actor;
  const committer = { agentId, sessionId, worktreeId };
  const issues = await issueEdits(workspace, (oids) => textsIn(draft, oids), changes, committer, false);
  const keys = issues.map(({ id }) => ({ key: orThrow(issueKey(id)), leaseId: null }));
  const standing = (await workspace.coordinator.find(keys)).filter(
    (one) => one.standing === "valid" && !one.stale,
  );
  const leases = standing.map(({ lease }) => lease);
  const objections = judgeCommit({ changes: [], issues, committer, worktreeId, leases });
  if (objections.length > 0) throw objected(objections);
  const mine = leases.filter((lease) => sameParty(lease, actor));
  const trailers = issues.map(({ id, issue }): Trailer => {
    const lease = mine.find(({ key }) => key === `issue:${id}`);
    const stamp = issue?.stamp;
    return {
      issueId: id,
      leaseId: stamp?.lease_id ?? lease?.leaseId ?? null,
      token: stamp?.fencing_token ?? lease?.fencingToken ?? null,
    };
  });
  return { leases: mine, trailers };
}

async function textsIn(draft: Draft, oids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const decoder = new TextDecoder();
  const wanted = [...draft.values()].filter((one) => one?.content != null && oids.includes(one.oid));
  return new Map(wanted.map((one) => [one!.oid, decoder.decode(one!.content!)]));
}

function objected(objections: readonly Objection[]): CotenantError {
  const [{ code, message, hint }] = objections as [Objection];
  const more = objections.length === 1 ? "" : ` (and ${objections.length - 1} more)`;
  return new CotenantError(code, `${message}${more}`, {
    ...(hint === "" ? {} : { hint }),
    data: { paths: objections.slice(0, MOST_NAMED).map(({ path, owner }) => ({ path, holder: owner })) },
  });
}

/** Somebody who took one of these since they were looked at. Asked under the store's mutex: nobody can take more. */
export async function othersOn(
  workspace: Workspace,
  actor: Actor,
  paths: readonly string[],
): Promise<Lease | null> {
  if (paths.length === 0) return null;
  const { worktreeId } = actor;
  const keys = paths.flatMap((path) => keyOf(workspace, path) ?? []).filter(isPathKey);
  const extents = keys.map(
    (key) => ({ key, reach: "repository", worktreeId: worktreeId as WorktreeId }) as const,
  );
  const found = await workspace.coordinator.overlapping(extents);
  const other = found.find(
    ({ lease, standing }) =>
      standing === "valid" &&
      !sameParty(lease, actor) &&
      (lease.reach === "repository" || lease.worktreeId === worktreeId),
  );
  return other?.lease ?? null;
}
