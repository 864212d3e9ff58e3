import type { ChangingCommit } from "../../git/commits";
import type { ObjectId } from "../../git/object-name";
import { printable } from "../../kernel/ids";
import type { Issue } from "../issues/model";
import type { Objection } from "./commit-rules";
import type { ReadTrailers, Trailer } from "./trailers";
import type { Witness } from "./witness";

/** A commit that is pushed, or was. */
export interface PushedCommit extends ChangingCommit {
  readonly trailers: ReadTrailers;
  /** The issues that it changes. */
  readonly edits: readonly PushedEdit[];
}

/** What a commit does to an issue. */
export interface PushedEdit {
  readonly issueId: string;
  readonly paths: readonly string[];
  /** What its `issue.json` becomes; null where that is not changed, or cannot be read. */
  readonly issue: Issue | null;
  /** It brings the issue into this history, in its first version. */
  readonly isCreation: boolean;
  /**
   * SHA-256 of its new `issue.json`; null where that is not changed, is no newer version than what it replaces, or where
   * comments are lost besides.
   */
  readonly digest: string | null;
  /** A merge whose result is what the two sides come to, and nobody's own doing. */
  readonly isMerged: boolean;
}

export interface PushQuestion {
  readonly witness: Witness;
  /** Valid claims of today, by issue. */
  readonly held: ReadonlyMap<string, HeldClaim>;
  readonly mode: "at_commit" | "still_held";
  /** Who pushes, where that is known: a commit that names nobody is theirs. */
  readonly pusher: string | null;
  /** By issue: commits that its holder has gone on from, and so has taken over. */
  readonly takenOver: ReadonlyMap<string, ReadonlySet<ObjectId>>;
  /** Whether the clone where the commits were made is known to have our hooks. A server cannot know, nor can CI. */
  readonly hasHooks: boolean;
}

/** Who holds an issue now. */
export interface HeldClaim {
  readonly agentId: string;
  readonly leaseId: string;
}

export interface PushObjection extends Objection {
  readonly commit: string;
}

/** On what the right to a change of an issue rests. */
export type Right = "created" | "written" | "decided" | "merged" | "claimed";
export type Wrong = Pick<Objection, "code" | "message">;

/** Clocks of two machines are never quite equal. */
const SLACK_MS = 5_000;

/** Every change of an issue had its claim when it was committed, and nobody else has claimed the issue since. */
export function issueObjections(question: PushQuestion, commit: PushedCommit): PushObjection[] {
  return commit.edits.flatMap((edit) => objectionTo(question, commit, edit));
}

export function aboutCommit(commit: Pick<PushedCommit, "oid">, path: string) {
  return { commit: commit.oid, path, owner: null, leaseId: null };
}

export function shortOf({ oid }: Pick<PushedCommit, "oid">): string {
  return oid.slice(0, 12);
}

/**
 * What makes a commit of the current branch again, and all on top of it: through the hooks, so that they name its leases.
 * Without hooks it would change nothing. `first` is a command that has to come before it.
 */
export function committingAnew(
  { hasHooks }: Pick<PushQuestion, "hasHooks">,
  commit: Pick<PushedCommit, "oid" | "parents">,
  first: string | null = null,
): string {
  const base = commit.parents.length === 0 ? "--root" : `${shortOf(commit)}~1`;
  const rebase = `git rebase --no-ff --rebase-merges ${base}`;
  return [hasHooks ? null : "cotenant hooks install", first, rebase]
    .filter((command) => command !== null)
    .join(" && ");
}

/** When the first of them was made, or authored. */
export function oldest(commits: readonly PushedCommit[]): number {
  return commits.reduce(
    (least, { authoredAtMs, committedAtMs }) => Math.min(least, authoredAtMs, committedAtMs),
    Number.MAX_SAFE_INTEGER,
  );
}

/** Who made it, as far as anybody says so. */
export function makersOf(
  { trailers }: Pick<PushedCommit, "trailers">,
  pusher: string | null,
): readonly string[] {
  return trailers.agentIds.length > 0 || pusher === null ? trailers.agentIds : [pusher];
}

function objectionTo(question: PushQuestion, commit: PushedCommit, edit: PushedEdit): PushObjection[] {
  const { issueId } = edit;
  const about = aboutCommit(commit, edit.paths[0]!);
  const short = shortOf(commit);
  const right = rightTo(question, commit, edit);
  if (typeof right !== "string") {
    const anew = committingAnew(question, commit, `cotenant claim acquire ${issueId}`);
    const hint = `claim the issue, and commit it anew: ${anew}`;
    return [{ ...about, ...right, message: `${short}: ${right.message}`, hint }];
  }
  // Creating needs no claim, nor does a word on a gate; and what both sides of a merge come to is nobody's doing.
  if (right === "created" || right === "decided" || right === "merged") return [];
  const other = question.held.get(issueId);
  const named = namedFor(commit, issueId);
  const isOthers =
    other !== undefined &&
    other.agentId !== question.pusher &&
    question.takenOver.get(issueId)?.has(commit.oid) !== true;
  if (isOthers) {
    return [
      {
        ...about,
        code: "E_LOCK_CONFLICT",
        message: `${short}: issue ${issueId} is claimed by ${other.agentId} now`,
        hint: `wait until it is given back: cotenant claim acquire ${issueId} --wait; or ${other.agentId} pushes it, with a commit of theirs on top`,
        owner: other.agentId,
        leaseId: other.leaseId,
      },
    ];
  }
  if (question.mode === "at_commit" || named.length === 0 || other !== undefined) return [];
  return [
    {
      ...about,
      code: "E_LEASE_REQUIRED",
      message: `${short}: the claim on issue ${issueId} is not held any more, as enforce.push = still_held wants it`,
      hint: `claim it, and push again: cotenant claim acquire ${issueId}`,
    },
  ];
}

function namedFor({ trailers }: PushedCommit, issueId: string): (Trailer & { readonly leaseId: string })[] {
  return trailers.issues.filter(
    (line): line is Trailer & { leaseId: string } => line.issueId === issueId && line.leaseId !== null,
  );
}

/** Whether the commit is the holder's: under this very claim, or under an earlier one of the same agent. */
function isTheirs(
  { witness }: Pick<PushQuestion, "witness">,
  commit: PushedCommit,
  issueId: string,
  holder: HeldClaim,
): boolean {
  return (
    commit.trailers.agentIds.includes(holder.agentId) ||
    namedFor(commit, issueId).some(
      ({ leaseId }) => leaseId === holder.leaseId || witness.lease(leaseId)?.agentId === holder.agentId,
    )
  );
}

/** Whoever takes over a claim, or is handed it, goes on from what others did under it: all below a commit of theirs. */
export function takenOverBy(
  question: Pick<PushQuestion, "witness" | "held">,
  commits: readonly PushedCommit[],
): PushQuestion["takenOver"] {
  const edited = new Set(commits.flatMap(({ edits }) => edits.map(({ issueId }) => issueId)));
  const holders = [...question.held].filter(([issueId]) => edited.has(issueId));
  return new Map(
    holders.map(([issueId, holder]) => {
      const below = new Set<ObjectId>();
      // Children come before their parents here.
      for (const commit of commits.toReversed())
        if (below.has(commit.oid) || isTheirs(question, commit, issueId, holder))
          for (const oid of [commit.oid, ...commit.parents]) below.add(oid);
      return [issueId, below];
    }),
  );
}

/** The right to a change, or why there is none. */
export function rightTo(
  { witness }: Pick<PushQuestion, "witness">,
  commit: PushedCommit,
  { issueId, isCreation, digest, isMerged }: PushedEdit,
): Right | Wrong {
  if (isCreation) return "created";
  const written = digest === null ? null : witness.written(issueId, digest);
  if (written !== null) return written === "gate" ? "decided" : "written";
  if (isMerged) return "merged";
  const named = namedFor(commit, issueId);
  if (named.length === 0)
    return { code: "E_LEASE_REQUIRED", message: `changes issue ${issueId} without a claim` };
  const unknown = (leaseId: string): Wrong => ({
    code: "E_LEASE_REQUIRED",
    message: `names lease ${printable(leaseId, 40)}, which nobody has on issue ${issueId}`,
  });
  // Those of other repositories say nothing: a commit that is made anew here goes on naming them.
  const known = named.flatMap(({ leaseId, token }) => {
    const lease = witness.lease(leaseId);
    return lease === null ? [] : [{ leaseId, token, lease }];
  });
  if (known.length === 0) return unknown(named[0]!.leaseId);
  let isInTime = false;
  // A squash has several: each must be what it says, and one of them must have been held.
  for (const { leaseId, token, lease } of known) {
    if (lease.key !== `issue:${issueId}`) return unknown(leaseId);
    if (lease.token !== token)
      return {
        code: "E_FENCING_MISMATCH",
        message: `names token ${token} for a lease with ${lease.token}`,
      };
    // A rebase commits anew what was authored in time.
    const isIn = (atMs: number) =>
      atMs >= lease.grantedAtMs - SLACK_MS && (lease.endsAtMs === null || atMs <= lease.endsAtMs + SLACK_MS);
    isInTime ||= isIn(commit.committedAtMs) || isIn(commit.authoredAtMs);
  }
  if (isInTime) return "claimed";
  return {
    code: "E_LOCK_EXPIRED",
    message: `the claim on issue ${issueId} was over when it was committed`,
  };
}
