import { CotenantError } from "../../errors/cotenant-error";
import { toByteText } from "../../git/byte-text";
import { decode, parentOf } from "../../identity/path-text";
import { listWorktrees, standingOf, type WorktreeEntry } from "../../identity/worktree-list";
import { printable, type WorktreeId } from "../../kernel/ids";
import { newUlid } from "../../platform/new-ulid";
import { accessFact } from "./access";
import { askLine, askMaybe, LONG_MS } from "./git-calls";
import { type Ending, endHomeless, storedId } from "./homeless";
import { machineOf, oneAtATime, realPlace, type Yard } from "./place";
import { recordName } from "./records";
import { loneCommits } from "./removal-risk";
import { removeTree } from "./tree-removal";

/** A worktree that is not there any more, and what was kept of it. */
export interface Forgotten {
  readonly worktreeId: WorktreeId | null;
  /** A ref to what only Git's record of it led to: commits, and what was staged. */
  readonly keptRef: string | null;
  /** What became of the leases that were held from it. */
  readonly leases: Ending;
}

/**
 * Makes Git forget a worktree whose directory is gone. Whatever is in its place by now is somebody else's and is not
 * touched: only Git's own record of the worktree goes, and what that alone led to gets a ref first.
 */
export async function forgetGone(yard: Yard, worktree: WorktreeEntry): Promise<Forgotten> {
  const { root } = worktree;
  await refuseLockedByGit(yard, worktree);
  const worktreeId = await storedId(machineOf(yard).platform, worktree);
  const keptRef = await keep(yard, worktree);
  await oneAtATime(yard, () => forgetRecord(yard, worktree));
  await yard.session.log(`worktree ${printable(root, 500)}`, {
    type: "worktree.removed",
    payload: { worktree_id: worktreeId, root, snapshot_id: null, was_gone: true, kept_ref: keptRef },
    facts: new Map(
      worktreeId === null ? [] : [recordName(worktreeId), accessFact(worktreeId)].map((name) => [name, null]),
    ),
  });
  const leases =
    worktreeId === null ? { ended: [], stillHeld: [] } : await endHomeless(yard.session, worktreeId);
  return { worktreeId, keptRef, leases };
}

/** Those that are in the way of a new worktree at a place or on a branch, though they are gone. */
export async function forgetGoneAt(
  yard: Yard,
  { place, branch }: { readonly place: string; readonly branch: string | null },
): Promise<void> {
  const { platform, git } = machineOf(yard);
  const root = await realPlace(platform.files, place);
  for (const entry of await listWorktrees(platform, git, yard.workspace.repository)) {
    if (entry.exists || entry.isMain) continue;
    if (entry.root === root || (branch !== null && entry.branch === branch)) await forgetGone(yard, entry);
  }
}

/** What Git has on record of a worktree at a place where none is any more. The caller holds the lock of all of them. */
export async function forgetAt(yard: Yard, place: string): Promise<void> {
  const { platform, git } = machineOf(yard);
  const root = await realPlace(platform.files, place);
  for (const entry of await listWorktrees(platform, git, yard.workspace.repository))
    if (entry.root === root && !entry.exists) await forgetRecord(yard, entry);
}

/** Takes away what Git has on record of a worktree that is not at its place. The caller holds the lock of all of them. */
async function forgetRecord(
  yard: Yard,
  { root, gitDir }: Pick<WorktreeEntry, "root" | "gitDir">,
): Promise<void> {
  const { platform } = machineOf(yard);
  const { trees, workspace } = yard;
  const records = `${workspace.repository.commonDir}/worktrees`;
  if (parentOf(gitDir) !== records || (await standingOf(platform, root, gitDir)) === "there") return;
  await removeTree(trees, toByteText(gitDir));
  // As Git does it.
  if (!(await trees.removeDirectory(toByteText(records)))) await trees.syncDirectory(toByteText(records));
}

export async function refuseLockedByGit(
  yard: Yard,
  { root, gitDir }: Pick<WorktreeEntry, "root" | "gitDir">,
): Promise<void> {
  const bytes = await machineOf(yard).platform.files.readFile(`${gitDir}/locked`);
  if (bytes === null) return;
  const why = decode(bytes).trim();
  throw new CotenantError(
    "E_POLICY",
    `${printable(root, 500)} is locked in Git${why === "" ? "" : `: ${printable(why, 200)}`}`,
    { hint: `whoever locked it unlocks it: git worktree unlock ${printable(root, 500)}`, data: { root } },
  );
}

/** A commit with what was staged, on top of the commits that nothing else leads to; null where there is nothing of that. */
async function keep(yard: Yard, worktree: WorktreeEntry): Promise<string | null> {
  const { git, platform } = machineOf(yard);
  const { gitDir } = worktree;
  const place = ["--git-dir", gitDir];
  const options = { cwd: gitDir, timeoutMs: LONG_MS };
  const tips = await loneCommits(yard, worktree);
  const head = await askMaybe(git, [...place, "rev-parse", "--verify", "--quiet", "HEAD^{tree}"], options);
  // Of a merge that was not settled there is no tree; the commits that were merged are there all the same.
  const staged = await askMaybe(git, [...place, "write-tree"], options);
  const tree = staged ?? head;
  if (tree === null || (tips.length === 0 && (staged === null || staged === head))) return null;
  const parents = tips.flatMap((tip) => ["-p", tip]);
  const message = `what ${printable(worktree.root, 500)} led to when it was gone`;
  const signature = { NAME: "cotenant", EMAIL: "cotenant@localhost" };
  const env = Object.fromEntries(
    ["AUTHOR", "COMMITTER"].flatMap((who) =>
      Object.entries(signature).map(([what, value]) => [`GIT_${who}_${what}`, value]),
    ),
  );
  const args = [...place, "commit-tree", "-m", message, ...parents, tree];
  const commit = await askLine(git, args, { ...options, env }, "keeping what a worktree led to");
  const id = newUlid(platform);
  const ref = `refs/cotenant/gone/${id}`;
  const update = [...place, "-c", "core.fsync=all", "update-ref", ref, commit, ""];
  await askLine(git, update, options, "keeping what a worktree led to");
  return ref;
}
