import type { CommitReader } from "../../git/commits";
import type { ObjectId } from "../../git/object-name";
import { GLOBAL_FILES } from "./commit-rules";
import { diverged, type MainRef } from "./divergence";
import { isAllowed, notAllowed } from "./global-operations";
import { aboutCommit, type PushedCommit, type PushObjection, shortOf } from "./push-rules";
import type { TipMove } from "./push-tips";

/** Where what concerns everybody may be pushed to. */
export interface BranchRules {
  readonly allowed: readonly string[];
  /** As the place that is pushed to has it, before the push; null where it has none. */
  readonly main: MainRef | null;
  /** Of these the first that is there is the main one. */
  readonly mainNames: readonly string[];
  readonly requireHistory: boolean;
  /** Where the allowed branches stand there. */
  readonly allowedTips: () => Promise<readonly ObjectId[]>;
  /** How another branch is allowed there. */
  readonly howToAllow: (branch: string) => string;
}

const HEADS = "refs/heads/";

/** What the push makes of the main branch, which may be its first commit; null where that stays as it is. */
export function mainMove(
  { main, mainNames }: Pick<BranchRules, "main" | "mainNames">,
  moves: readonly TipMove[],
): TipMove | null {
  for (const branch of mainNames) {
    const move = moves.find(({ ref }) => ref === `${HEADS}${branch}`);
    if (move !== undefined) return move;
    if (branch === main?.branch) return null;
  }
  return null;
}

/** The main branch as the place that is pushed to has it, if the push says so and it is another commit than is known here. */
export function mainThere(
  branches: Pick<BranchRules, "main" | "mainNames">,
  moves: readonly TipMove[],
): MainRef | null {
  const { ref = "", from = null } = mainMove(branches, moves) ?? {};
  if (from === null || from === branches.main?.commit) return null;
  return { name: shortOf({ oid: from }), branch: ref.slice(HEADS.length), commit: from };
}

/**
 * The configuration, the types and the gates: they come only to branches that may have them, on top of the main one. What a
 * branch has in the end is looked at, not only what is new in the push: the commits may have come in under another name.
 */
export async function branchObjections(
  reader: CommitReader,
  rules: BranchRules,
  moves: readonly TipMove[],
  commits: readonly PushedCommit[],
): Promise<PushObjection[]> {
  const { allowed, main, requireHistory, howToAllow } = rules;
  if (main === null) return [];
  const branches = moves.filter(({ ref }) => ref.startsWith(HEADS));
  const mayHave = ({ ref }: TipMove) => isAllowed(ref.slice(HEADS.length), allowed, main);
  const objections: PushObjection[] = [];
  for (const move of branches) {
    const isOpen = mayHave(move);
    if (isOpen && (!requireHistory || (await reader.isAncestor(main.commit, move.to)))) continue;
    // What the main branch does not have yet is set up for the first time.
    const changed = (await reader.difference(main.commit, move.to, GLOBAL_FILES)).filter(
      ({ status }) => status !== "added",
    );
    const paths = new Set(changed.map(({ path }) => path));
    const known = isOpen
      ? async () => [main.commit]
      : async () => [
          main.commit,
          ...(await rules.allowedTips()),
          ...branches.filter(mayHave).map(({ to }) => to),
        ];
    await dropKnown(reader, move, paths, known);
    const [path] = paths;
    if (path === undefined) continue;
    const commit = commits.find(({ changes }) => changes.some((change) => change.path === path)) ?? {
      oid: move.to,
    };
    const { code, message, hint } = isOpen
      ? diverged({ kind: "lacks", main: main.name, isShallow: false, isUnborn: false })
      : notAllowed(move.ref.slice(HEADS.length), allowed, main.branch, howToAllow);
    objections.push({
      ...aboutCommit(commit, path),
      code,
      message: `${shortOf(commit)}: ${path}: ${message}`,
      hint,
    });
  }
  return objections;
}

/** Takes out what the branch has had before, and what one of the branches that may has where the two part. */
async function dropKnown(
  reader: CommitReader,
  { from, to }: TipMove,
  paths: Set<string>,
  tips: () => Promise<readonly ObjectId[]>,
): Promise<void> {
  const keep = async (base: ObjectId) => {
    const differing = new Set((await reader.difference(base, to, GLOBAL_FILES)).map(({ path }) => path));
    for (const path of paths) if (!differing.has(path)) paths.delete(path);
  };
  if (from !== null && paths.size > 0) await keep(from);
  if (paths.size === 0) return;
  for (const tip of new Set(await tips()))
    for (const base of await reader.mergeBases(tip, to)) if (paths.size > 0) await keep(base);
}
