import { isCount } from "../../kernel/bounds";
import { type Fact, type FactName, factId, factName } from "../../kernel/facts";
import { type Ulid, ulidIn } from "../../kernel/ids";
import { ISSUE_STATES, type Issue, type IssueState } from "./model";

/** A line that a write adds to one of the files that only grow. */
export interface Addition {
  readonly file: AppendOnly;
  readonly line: string;
}

export const LABELS = "labels.or-set.jsonl";
export const DEPENDENCIES = "deps.or-set.jsonl";
export const COMMENTS = "comments.jsonl";
/** In the data plane's own folder, for all issues together. */
export const EVENTS = "events/local.jsonl";
/** In the data plane's own folder, one file per issue: `gates/results/<id>.jsonl`. */
export const RESULTS = "gates/results";
export type AppendOnly =
  | typeof LABELS
  | typeof DEPENDENCIES
  | typeof COMMENTS
  | typeof EVENTS
  | typeof RESULTS;

/**
 * What the control plane remembers of the last write of an issue (PROTOCOL 17): enough to know, in a worktree that has
 * not seen it yet, that the issue is done; and enough to finish the write if its process died before it could.
 */
export interface WrittenStamp {
  readonly version: number;
  /** Of the text of its `issue.json`. */
  readonly digest: string;
  readonly state: IssueState;
  readonly isDeleted: boolean;
  /** Where it was written. */
  readonly worktreeId: string;
  readonly agentId: string;
  readonly at: string;
  readonly additions: readonly Addition[];
}

/**
 * The highest token that these issues are known to have been written under. A control plane that was put back from an older
 * copy does not know of it, and would give it out again (PROTOCOL 23).
 */
export function tokenSeen(issues: readonly Issue[]): number {
  return issues.reduce((highest, { stamp }) => Math.max(highest, stamp.fencing_token ?? 0), 0);
}

export const STAMP_KIND = "stamp";

/** Whether the write was somebody's word on a gate: those whom `gates.pass_by` allows need no claim for it. */
export function isGateWord(additions: readonly Pick<Addition, "file">[]): boolean {
  return additions.some(({ file }) => file === RESULTS);
}

export function stampName(id: Ulid): FactName {
  // In small letters: it becomes a file's name, also where file systems fold case.
  return factName(STAMP_KIND, id.toLowerCase());
}

export function stampId(name: FactName): Ulid | null {
  return ulidIn(factId(name));
}

export function stampToFact(stamp: WrittenStamp): Fact {
  const { version, digest, state, isDeleted, worktreeId, agentId, at, additions } = stamp;
  return {
    version,
    digest,
    state,
    ...(isDeleted ? { deleted: true } : {}),
    worktree_id: worktreeId,
    agent_id: agentId,
    at,
    ...(additions.length === 0 ? {} : { additions }),
  };
}

/** Null for one that is not understood: the copies alone decide then. */
export function stampFromFact(fact: Fact): WrittenStamp | null {
  const { version, digest, state, deleted, worktree_id, agent_id, at, additions } = fact;
  if (!isCount(version) || typeof digest !== "string") return null;
  if (!ISSUE_STATES.includes(state as IssueState)) return null;
  return {
    version,
    digest,
    state: state as IssueState,
    isDeleted: deleted === true,
    worktreeId: String(worktree_id ?? ""),
    agentId: String(agent_id ?? ""),
    at: String(at ?? ""),
    additions: Array.isArray(additions) ? (additions as Addition[]) : [],
  };
}
