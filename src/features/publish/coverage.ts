import type { LeaseStatus } from "../../coordinator/contract";
import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, errorFrom, orThrow } from "../../errors/cotenant-error";
import type { Leaf } from "../../git/tree-editor";
import { keyOf } from "../../identity/path-keys";
import type { Actor } from "../../kernel/commands";
import { type Extent, ExtentIndex } from "../../kernel/conflicts";
import { printable } from "../../kernel/ids";
import {
  directoriesAbove,
  dirKey,
  fileKey,
  isPathKey,
  issueKeyOf,
  type LeaseKey,
  pathOf,
  scopeKey,
} from "../../kernel/keys";
import { type Lease, sameParty } from "../../kernel/lease";
import { gone } from "../../kernel/proof";
import { expired } from "../../kernel/words";
import { blobs } from "../hooks/changes";
import { issueEdits } from "../hooks/commit";
import { commentsOf, issueOf, judgeCommit, type Objection, scopeOf } from "../hooks/commit-rules";
import type { Trailer } from "../hooks/trailers";
import { type ClaimsUnder, claimTrailers } from "./claims";
import type { Draft } from "./draft";
import { MOST_NAMED, others, typedPath } from "./hint-words";

/** On what the right to publish the paths rests. */
export interface Coverage {
  /** The caller's own, each of which covers something: proved once more at the commit. */
  readonly leases: readonly Lease[];
  /** What concerns everybody: taken for the time of the publish. */
  readonly scopes: readonly LeaseKey[];
  /** Nobody holds them, and nobody has to: they must be on the branch as they were in the base. */
  readonly optimistic: readonly string[];
  readonly issues: readonly Trailer[];
  /** What is done to issues, to be judged once more at the commit: somebody may have claimed one meanwhile. */
  readonly edits: IssueEdits | null;
  /** Claims that other machines know of, and that a push is fenced by. */
  readonly claims: readonly Lease[];
}

/** The leases on the issues decide about it, as they are when it is judged. */
export type IssueEdits = Omit<Parameters<typeof judgeCommit>[0], "leases">;

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

/** What covers a path: the table in docs/PUBLISH.md. */
function ruleFor(path: string): Rule {
  if (path.startsWith(".cotenant/events/")) return "free";
  if (scopeOf(path) !== null) return "scope";
  // Comments need no claim as long as they are only added; whether they are is seen by what is in them.
  return issueOf(path) !== null || commentsOf(path) !== null ? "issue" : "path";
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
    const extent = extentOf(key, actor);
    const lease = own.conflictingWith(extent)[0];
    const holder = theirs.conflictingWith(extent)[0] ?? null;
    if (lease !== undefined) used.set(lease.leaseId, lease);
    else if (holder !== null || required) uncovered.push({ path, key, holder });
    else optimistic.push(path);
  }
  if (uncovered.length > 0) {
    const concerned = new ExtentIndex(uncovered.map(({ key }) => extentOf(key, actor)));
    const about = found.filter(({ lease }) => concerned.conflictingWith(lease).length > 0);
    await refuseFormer(session, about, uncovered[0]!.key);
    refuseUncovered(workspace, uncovered);
  }
  const { leases, trailers, edits } = await issueCoverage(question);
  for (const lease of leases) used.set(lease.leaseId, lease);
  const claims = await question.claims.confirmed([...used.values()]);
  // Also those that cover nothing of it: other machines know of nothing else that it was written under.
  const named = new Set(trailers.map(({ leaseId }) => leaseId));
  const issues = [...trailers, ...claimTrailers(claims).filter(({ leaseId }) => !named.has(leaseId))];
  return { leases: [...used.values()], scopes: scopesOf(draft), optimistic, issues, edits, claims };
}

function extentOf(key: LeaseKey, { worktreeId }: Actor): Extent {
  return { key, reach: "worktree", worktreeId };
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

const MOST_TYPED = 20;

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

function refuseUncovered(workspace: Workspace, uncovered: readonly Uncovered[]): void {
  const [first] = uncovered;
  if (first === undefined) return;
  const { path, holder } = uncovered.find((one) => one.holder !== null) ?? first;
  const rest = uncovered.filter((one) => one.path !== path).map((one) => one.path);
  const more = others(rest);
  const who = holder === null ? "no lease of yours covers it" : `it is held by ${holder.agentId}`;
  const wanted = uncovered.slice(0, MOST_TYPED).map((one) => typedPath(workspace, one.path));
  throw new CotenantError("E_PATH_NOT_LEASED", `${printable(path, 200)}: ${who}${more}`, {
    hint:
      holder === null
        ? `lease what you publish, and publish again: cotenant lock acquire ${wanted.join(" ")}`
        : `wait for it: cotenant lock acquire ${typedPath(workspace, path)} --wait --timeout 300`,
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
): Promise<{ leases: Lease[]; trailers: readonly Trailer[]; edits: IssueEdits | null }> {
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
          before: before.get(path)?.oid ?? null,
          mode: wanted?.mode ?? null,
        }) as const,
    );
  if (changes.length === 0) return { leases: [], trailers: [], edits: null };
  const { agentId, sessionId, worktreeId } = actor;
  const committer = { agentId, sessionId, worktreeId };
  const read = (oids: readonly string[]) => textsIn(workspace, draft, oids);
  const issues = await issueEdits(workspace, read, changes, committer, false);
  const edits: IssueEdits = { changes: [], issues, committer, worktreeId };
  const leases = await judgeEdits(workspace, edits);
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
  return { leases: mine, trailers, edits };
}

/** Throws what speaks against it now. Also asked under the store's mutex: nobody can claim one of them then. */
export async function judgeEdits(workspace: Workspace, edits: IssueEdits): Promise<Lease[]> {
  const keys = edits.issues.map(({ id }) => ({ key: issueKeyOf(id), leaseId: null }));
  const standing = (await workspace.coordinator.find(keys)).filter(
    (one) => one.standing === "valid" && !one.stale,
  );
  const leases = standing.map(({ lease }) => lease);
  const objections = judgeCommit({ ...edits, leases });
  if (objections.length > 0) throw objected(objections);
  return leases;
}

/** What is published, and what was there before. */
async function textsIn(
  { surroundings, repository }: Workspace,
  draft: Draft,
  oids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const decoder = new TextDecoder();
  const drafted = [...draft.values()].filter((one) => one?.content != null && oids.includes(one.oid));
  const texts = new Map(drafted.map((one) => [one!.oid, decoder.decode(one!.content!)]));
  const others = oids.filter((oid) => !texts.has(oid));
  const place = { cwd: repository.worktreeRoot };
  for (const [oid, text] of await blobs(surroundings.git, place, others)) texts.set(oid, text);
  return texts;
}

function objected(objections: readonly Objection[]): CotenantError {
  const [{ code, message, hint }] = objections as [Objection];
  const more = others(objections.slice(1).map(({ path }) => path));
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
  const extents = keys.map((key) => ({ ...extentOf(key, actor), reach: "repository" as const }));
  const found = await workspace.coordinator.overlapping(extents);
  const other = found.find(
    ({ lease, standing }) =>
      standing === "valid" &&
      !sameParty(lease, actor) &&
      (lease.reach === "repository" || lease.worktreeId === worktreeId),
  );
  return other?.lease ?? null;
}
