import type { Objection } from "./commit-rules";
import { issueOf } from "./commit-rules";
import type { GuardedCommit } from "./pushed";
import type { Trailer } from "./trailers";
import type { Witness } from "./witness";

/** What is known of the contents that a commit gives to an issue. */
export interface IssueContent {
  /** SHA-256 of its `issue.json`; null where the commit does not have one. */
  readonly digest: string | null;
  readonly version: number | null;
}

export interface PushQuestion {
  readonly commits: readonly GuardedCommit[];
  readonly content: (commit: GuardedCommit, issueId: string) => IssueContent;
  readonly witness: Witness;
  /** Valid claims of today, by issue. */
  readonly held: ReadonlyMap<string, HeldClaim>;
  readonly mode: "at_commit" | "still_held";
}

/** Who holds an issue now. */
export interface HeldClaim {
  readonly agentId: string;
  readonly leaseId: string;
}

export interface PushObjection extends Objection {
  readonly commit: string;
}

/** Clocks of two machines are never quite equal. */
const SLACK_MS = 5_000;

/** Every guarded change had its lease when it was committed, and nobody else has claimed the issue since. */
export function judgePush(question: PushQuestion): PushObjection[] {
  return question.commits.flatMap((commit) => {
    const ids = new Set(commit.changes.map(({ path }) => issueOf(path)).filter((id) => id !== null));
    return [...ids].flatMap((id) => objectionTo(question, commit, id));
  });
}

function objectionTo(question: PushQuestion, commit: GuardedCommit, issueId: string): PushObjection[] {
  const paths = commit.changes.map(({ path }) => path).filter((path) => issueOf(path) === issueId);
  const about = { commit: commit.oid, path: paths[0]!, owner: null, leaseId: null };
  const short = commit.oid.slice(0, 12);
  const trailer = commit.trailers.issues.find((line) => line.issueId === issueId) ?? null;
  const wrong = withoutRight(question, commit, issueId, trailer);
  if (wrong !== null) return [{ ...about, ...wrong, message: `${short}: ${wrong.message}` }];
  const other = question.held.get(issueId);
  const committedBy = commit.trailers.agentId;
  if (other !== undefined && committedBy !== null && other.agentId !== committedBy) {
    return [
      {
        ...about,
        code: "E_LOCK_CONFLICT",
        message: `${short}: issue ${issueId} is claimed by ${other.agentId} now`,
        hint: `wait until it is given back: cotenant claim acquire ${issueId} --wait`,
        owner: other.agentId,
        leaseId: other.leaseId,
      },
    ];
  }
  if (question.mode === "at_commit" || trailer?.leaseId == null || other?.leaseId === trailer.leaseId)
    return [];
  return [
    {
      ...about,
      code: "E_LEASE_REQUIRED",
      message: `${short}: the claim on issue ${issueId} is not held any more`,
      hint: `claim it, and push again: cotenant claim acquire ${issueId} (enforce.push = still_held)`,
    },
  ];
}

function withoutRight(
  { witness, content }: PushQuestion,
  commit: GuardedCommit,
  issueId: string,
  trailer: Trailer | null,
): Pick<Objection, "code" | "message" | "hint"> | null {
  const { digest, version } = content(commit, issueId);
  const file = commit.changes.find(({ path }) => path.endsWith(`/${issueId}/issue.json`));
  if (file?.status === "added" && version === 1) return null;
  if (digest !== null && witness.hasWritten(issueId, digest)) return null;
  const hint = `claim the issue, and commit it again: cotenant claim acquire ${issueId}`;
  if (trailer === null || trailer.leaseId === null)
    return { code: "E_LEASE_REQUIRED", message: `changes issue ${issueId} without a claim`, hint };
  const lease = witness.lease(trailer.leaseId);
  if (lease === null || lease.key !== `issue:${issueId}`)
    return {
      code: "E_LEASE_REQUIRED",
      message: `names lease ${trailer.leaseId}, which nobody has on issue ${issueId}`,
      hint,
    };
  if (lease.token !== trailer.token)
    return {
      code: "E_FENCING_MISMATCH",
      message: `names token ${trailer.token} for a lease with ${lease.token}`,
      hint,
    };
  // A rebase commits anew what was authored in time.
  const isIn = (atMs: number) =>
    atMs >= lease.grantedAtMs - SLACK_MS && (lease.endsAtMs === null || atMs <= lease.endsAtMs + SLACK_MS);
  if (isIn(commit.committedAtMs) || isIn(commit.authoredAtMs)) return null;
  return {
    code: "E_LOCK_EXPIRED",
    message: `the claim on issue ${issueId} was over when it was committed`,
    hint,
  };
}
