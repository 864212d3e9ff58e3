import type { CommitReader } from "../objects/commits";
import type { ObjectId } from "../objects/object-name";
import { scopeOf } from "./commit-rules";
import { diverged, type MainRef } from "./divergence";
import { isAllowed, notAllowed } from "./global-operations";
import { aboutCommit, type PushedCommit, type PushObjection, shortOf } from "./push-rules";
import type { TipMove } from "./push-tips";

/** Where what concerns everybody may be pushed to. */
export interface BranchRules {
  readonly allowed: readonly string[];
  /** As the place that is pushed to has it, before the push; null where it has none. */
  readonly main: MainRef | null;
  readonly requireHistory: boolean;
  /** How another branch is allowed there. */
  readonly howToAllow: (branch: string) => string;
}

const HEADS = "refs/heads/";

/** Pushed changes of the configuration, the types and the gates: only to branches that may, on top of the main one. */
export async function branchObjections(
  reader: CommitReader,
  { allowed, main, requireHistory, howToAllow }: BranchRules,
  moves: readonly TipMove[],
  commits: readonly PushedCommit[],
): Promise<PushObjection[]> {
  const concerned = commits.filter(({ changes }) => changes.some(({ path }) => scopeOf(path) !== null));
  if (main === null || concerned.length === 0) return [];
  const branches = moves.filter(({ ref }) => ref.startsWith(HEADS));
  const mayHave = ({ ref }: TipMove) => isAllowed(ref.slice(HEADS.length), allowed, main);
  const tips = branches.filter(mayHave).map(({ to }) => to);
  const objections: PushObjection[] = [];
  for (const move of branches) {
    const changed = await changedFromMain(reader, main, move.to);
    const refusal = mayHave(move)
      ? requireHistory && !(await reader.isAncestor(main.commit, move.to))
        ? diverged({ kind: "lacks", main: main.name, isShallow: false, isUnborn: false })
        : null
      : notAllowed(move.ref.slice(HEADS.length), allowed, main.branch, howToAllow);
    if (refusal === null || changed.size === 0) continue;
    for (const commit of concerned) {
      const path = commit.changes.map((change) => change.path).find((one) => changed.has(one));
      if (path === undefined || !(await isBrought(reader, commit, move.to, mayHave(move) ? [] : tips)))
        continue;
      objections.push({
        ...aboutCommit(commit, path),
        code: refusal.code,
        message: `${shortOf(commit)}: ${path}: ${refusal.message}`,
        hint: refusal.hint,
      });
      // One is enough, and each costs a look at the history.
      break;
    }
  }
  return objections;
}

/** Whether a tip brings a commit, and none of the others does. */
async function isBrought(
  reader: CommitReader,
  { oid }: PushedCommit,
  tip: ObjectId,
  others: readonly ObjectId[],
): Promise<boolean> {
  if (!(await reader.isAncestor(oid, tip))) return false;
  const elsewhere = await Promise.all(others.map((other) => reader.isAncestor(oid, other)));
  return !elsewhere.includes(true);
}

/** What the main branch does not have yet is set up for the first time, and what ends as it has it changes nothing. */
async function changedFromMain(reader: CommitReader, main: MainRef, tip: ObjectId): Promise<Set<string>> {
  const differing = await reader.difference(main.commit, tip);
  return new Set(
    differing
      .filter(({ path, status }) => scopeOf(path) !== null && status !== "added")
      .map(({ path }) => path),
  );
}
