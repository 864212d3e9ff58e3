import type { ChangingCommit } from "../../git/commits";
import { ExtentIndex } from "../../kernel/conflicts";
import { printable, trusted, type WorktreeId } from "../../kernel/ids";
import type { LeaseKey } from "../../kernel/keys";
import type { Lease } from "../../kernel/lease";
import { shellWord } from "../../kernel/printing";
import {
  aboutCommit,
  committingAnew,
  makersOf,
  type PushedCommit,
  type PushObjection,
  shortOf,
} from "./push-rules";
import { parseTrailers } from "./trailers";
import { objectionThen, type Violation } from "./violations";
import type { LoggedLease, LogWitness } from "./witness";

export interface FileQuestion {
  readonly witness: LogWitness;
  /** Every valid lease of today on one of the paths. */
  readonly held: readonly Lease[];
  /** What rules a path. */
  readonly keyOf: (path: string) => LeaseKey;
  /** Commits that are on record as having gone against leases. */
  readonly violations: ReadonlyMap<string, Violation>;
  readonly mode: "at_commit" | "still_held";
  readonly pusher: string | null;
  readonly hasHooks: boolean;
}

/** A commit says when it was made in whole seconds. */
const SECOND_MS = 1_000;

/** Judges files as they were judged when they were committed: nobody else held them then, and nobody else does now. */
export class FileJudge {
  readonly #question: FileQuestion;
  readonly #now: ExtentIndex<Lease>;
  readonly #then: ExtentIndex<LoggedLease>;

  constructor(question: FileQuestion) {
    this.#question = question;
    this.#now = new ExtentIndex(question.held);
    // Nobody knows when a process ended; what its leases were against is on record, or seen while they stand.
    this.#then = new ExtentIndex(question.witness.paths.filter(({ isBound }) => !isBound));
  }

  /** Whether anybody holds a file or a directory now. */
  get isAnyHeld(): boolean {
    return this.#question.held.length > 0;
  }

  isHeld(path: string): boolean {
    return this.#now.conflictsWith(this.#extent(path, null));
  }

  /** What a merge brings back to an earlier state is judged by who holds it now: nobody committed it then. */
  takenBack(commit: ChangingCommit, path: string): PushObjection[] {
    const { pusher } = this.#question;
    const trailers = parseTrailers(commit.message);
    const makers = makersOf({ trailers }, pusher);
    const other = this.#now
      .conflictingWith(this.#extent(path, trailers.worktreeId))
      .find(({ agentId }) => agentId !== pusher && !makers.includes(agentId));
    if (other === undefined) return [];
    return [
      {
        ...aboutCommit(commit, path),
        code: "E_LOCK_CONFLICT",
        message: `${shortOf(commit)}: takes back ${printable(path, 200)}, which is held by ${other.agentId} (${other.worktreeId}) now`,
        hint: "merge with the branch's side of it, or push when it is given back; until then: cotenant lock status",
        owner: other.agentId,
        leaseId: other.leaseId,
      },
    ];
  }

  #extent(path: string, worktreeId: string | null) {
    return {
      key: this.#question.keyOf(path),
      reach: "worktree",
      worktreeId: trusted<WorktreeId>(worktreeId ?? ""),
    } as const;
  }

  objections(commit: PushedCommit): PushObjection[] {
    const recorded = this.#recorded(commit);
    const seen = new Set(recorded.map(({ path }) => path));
    return [
      ...this.#wrongTokens(commit),
      ...recorded,
      ...commit.changes.flatMap(({ path }) => (seen.has(path) ? [] : this.#heldByOthers(commit, path))),
      ...(this.#question.mode === "still_held" ? this.#notHeldAnyMore(commit) : []),
    ];
  }

  /** Leases of other repositories say nothing here. */
  #named({ trailers }: PushedCommit): { lease: LoggedLease; token: number | null }[] {
    return trailers.leases.flatMap(({ leaseId, token }) => {
      const lease = this.#question.witness.lease(leaseId);
      return lease === null ? [] : [{ lease, token }];
    });
  }

  #wrongTokens(commit: PushedCommit): PushObjection[] {
    const [first] = commit.changes;
    return this.#named(commit).flatMap(({ lease, token }) =>
      lease.token === token
        ? []
        : [
            {
              ...aboutCommit(commit, first?.path ?? ""),
              code: "E_FENCING_MISMATCH" as const,
              message: `${shortOf(commit)}: names token ${token} for a lease on ${lease.key} with ${lease.token}`,
              hint: this.#anew(commit),
            },
          ],
    );
  }

  #recorded(commit: PushedCommit): PushObjection[] {
    const violation = this.#question.violations.get(commit.oid);
    return (violation?.objections ?? []).map((objection) => {
      const { path, owner, code } = objection;
      return {
        ...aboutCommit(commit, path),
        owner,
        code:
          code === "E_PATH_RULE"
            ? code
            : owner === null
              ? ("E_LEASE_REQUIRED" as const)
              : ("E_LOCK_CONFLICT" as const),
        message: `${shortOf(commit)} was committed by ${violation!.agentId} around the hooks: ${objectionThen(objection)}`,
        hint:
          code === "E_PATH_RULE"
            ? `leave it out, or let somebody whom no rule keeps from it commit it anew: ${committingAnew(this.#question, commit)}`
            : this.#anew(commit),
      };
    });
  }

  #anew(commit: PushedCommit): string {
    return `when nobody else holds it, commit it anew: ${committingAnew(this.#question, commit)}`;
  }

  #heldByOthers(commit: PushedCommit, path: string): PushObjection[] {
    const { pusher } = this.#question;
    const makers = makersOf(commit, pusher);
    const named = new Set(commit.trailers.leases.map(({ leaseId }) => leaseId));
    const isOthers = ({ leaseId, agentId }: { leaseId: string; agentId: string }) =>
      !named.has(leaseId) && !makers.includes(agentId) && agentId !== pusher;
    const extent = this.#extent(path, commit.trailers.worktreeId);
    const about = aboutCommit(commit, path);
    const name = `${shortOf(commit)}: ${printable(path, 200)}`;
    const now = this.#now.conflictingWith(extent).find(isOthers);
    if (now !== undefined)
      return [
        {
          ...about,
          code: "E_LOCK_CONFLICT",
          message: `${name} is held by ${now.agentId} (${now.worktreeId}) now`,
          hint: "push it when it is given back; until then: cotenant lock status",
          owner: now.agentId,
          leaseId: now.leaseId,
        },
      ];
    const then = this.#then
      .conflictingWith(extent)
      .find((lease) => isOthers(lease) && wasHeld(lease, commit));
    if (then === undefined) return [];
    return [
      {
        ...about,
        code: "E_LOCK_CONFLICT",
        message: `${name} was held by ${then.agentId} (${then.worktreeId}) when it was committed`,
        hint: this.#anew(commit),
        owner: then.agentId,
        leaseId: then.leaseId,
      },
    ];
  }

  /** The guard's leases end with the commit: only those that a person or an agent took on purpose can be held still. */
  #notHeldAnyMore(commit: PushedCommit): PushObjection[] {
    const { keyOf, held } = this.#question;
    const paths = commit.changes.map(({ path }) => ({ path, key: keyOf(path) }));
    return this.#named(commit).flatMap(({ lease }) => {
      if (lease.reach !== "repository") return [];
      const under = new ExtentIndex([lease]);
      const still = new ExtentIndex(held.filter(({ agentId }) => agentId === lease.agentId));
      const extent = (key: LeaseKey) => ({ key, reach: "repository", worktreeId: lease.worktreeId }) as const;
      const lost = paths.find(
        ({ key }) => under.conflictsWith(extent(key)) && !still.conflictsWith(extent(key)),
      );
      if (lost === undefined) return [];
      return [
        {
          ...aboutCommit(commit, lost.path),
          code: "E_LEASE_REQUIRED" as const,
          message: `${shortOf(commit)}: the lease on ${printable(lost.path, 200)} is not held any more, as enforce.push = still_held wants it`,
          hint: `take it, and push again: cotenant lock acquire ${shellWord(lost.path)}`,
        },
      ];
    });
  }
}

/** At both of its times: a rebase commits anew what was authored in time, and an amended commit may be in time now. */
function wasHeld({ grantedAtMs, endsAtMs }: LoggedLease, commit: PushedCommit): boolean {
  const isIn = (atMs: number) => grantedAtMs <= atMs && (endsAtMs === null || atMs + SECOND_MS <= endsAtMs);
  return isIn(commit.committedAtMs) && isIn(commit.authoredAtMs);
}
