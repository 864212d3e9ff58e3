import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, protectedError } from "../../errors/cotenant-error";
import { toByteText } from "../../git/byte-text";
import type { PathChange } from "../../git/commit-text";
import { DATA_DIRECTORY } from "../../identity/worktree-file";
import { listWorktrees, type WorktreeEntry } from "../../identity/worktree-list";
import { printable } from "../../kernel/ids";
import { isPathKey, kindOf, pathOf } from "../../kernel/keys";
import { sameParty } from "../../kernel/lease";
import { shellWord } from "../../kernel/printing";
import { type BranchUse, usesOf } from "../publish/branch-rules";
import { machineOf, type Yard } from "../worktrees/place";
import { hasHidden, underWayIn } from "../worktrees/removal-risk";
import { isChanged, obstaclesIn } from "./obstacles";
import { shownBranch } from "./target";

/** Where a target is checked out; null where it is nowhere. Throws where it is in use in a way that nothing can follow. */
export async function occupantOf(workspace: Workspace, ref: string): Promise<WorktreeEntry | null> {
  const { surroundings, repository } = workspace;
  const { platform, git } = surroundings;
  const uses = await usesOf(platform, git, repository, ref);
  if (uses.length === 0) return null;
  const [use] = uses as [BranchUse];
  if (uses.length > 1 || use.why !== "checked out") throw inUse(ref, uses);
  const entries = await listWorktrees(platform, git, repository);
  const entry = entries.find(({ gitDir }) => gitDir === use.gitDir);
  if (entry?.exists === false) throw inGone(ref, entry);
  if (entry === undefined || entry.worktreeId === null) throw inUse(ref, uses);
  return entry;
}

function inGone(ref: string, { root }: WorktreeEntry): CotenantError {
  const [name, where] = [shownBranch(ref), printable(root, 300)];
  return protectedError(
    `nothing lands on ${name}: it is checked out in ${where}, which is gone`,
    "if it does not come back: git worktree prune; then run the queue again",
    { ref, worktree: root },
  );
}

function inUse(ref: string, uses: readonly BranchUse[]): CotenantError {
  const where = uses.map((use) => `${use.why} in ${printable(use.where, 200)}`).join(", and ");
  return new CotenantError("E_PROTECTED_REF", `nothing lands on ${shownBranch(ref)}: it is ${where}`, {
    hint: "finish there, or switch to another branch (git switch --detach); with --push it lands on the remote only",
    data: { ref, uses: uses.map(({ where: worktree, why }) => ({ worktree, why })) },
  });
}

/** Issues belong to the target, and a stash would take them from everybody. */
function committingOurs(where: string): string {
  return `commit it there: git -C ${where} add ${DATA_DIRECTORY} && git -C ${where} commit -m "Issues" ${DATA_DIRECTORY}`;
}

/** Everything that would be lost, or be in somebody's way. Nothing has changed yet. */
export async function refuseUnfit(
  yard: Yard,
  entry: WorktreeEntry,
  ref: string,
  changes: readonly PathChange[],
): Promise<void> {
  const { platform, git } = machineOf(yard);
  const { root, gitDir } = entry;
  const underWay = await underWayIn(platform, gitDir);
  if (underWay !== null) throw unfit(entry, ref, `is in the middle of ${underWay}`, "finish it there");
  const isDirty = await isChanged(git, entry);
  const where = shellWord(root);
  if (isDirty === null)
    throw unfit(entry, ref, "cannot be read by Git", `look there: git -C ${where} status`);
  if (isDirty)
    throw unfit(
      entry,
      ref,
      "has changes that are not committed",
      (await isChanged(git, entry, [":/", `:(top,exclude)${DATA_DIRECTORY}`])) === false
        ? committingOurs(where)
        : `commit them on a branch of their own, or keep them: git -C ${where} stash`,
    );
  if (await hasHidden({ git, trees: yard.trees }, entry))
    throw unfit(
      entry,
      ref,
      "has files that Git was told not to look at, and that differ",
      `see which: git -C ${where} ls-files -v`,
    );
  const inTheWay = await obstaclesIn(yard.trees, toByteText(root), changes);
  if (inTheWay.length > 0)
    throw unfit(
      entry,
      ref,
      `has ${printable(inTheWay[0]!, 200)}, which is not committed there and would be overwritten`,
      inTheWay.every((path) => path.startsWith(`${DATA_DIRECTORY}/`))
        ? committingOurs(where)
        : "move it away, or remove it if nobody needs it",
      {
        paths: inTheWay.slice(0, 20).map((path) => printable(path, 500)),
      },
    );
  await refuseEdited(yard, entry, ref, changes);
}

/** Somebody edits files there, by their leases: what they have read must not change under their hands. */
async function refuseEdited(
  yard: Yard,
  entry: WorktreeEntry,
  ref: string,
  changes: readonly PathChange[],
): Promise<void> {
  const paths = changes.map(({ path }) => path);
  const { coordinator } = yard.workspace;
  for (const { lease, standing } of await coordinator.list()) {
    if (!isPathKey(lease.key)) continue;
    if (standing !== "valid" || lease.worktreeId !== entry.worktreeId || sameParty(lease, yard.session.actor))
      continue;
    const held = pathOf(lease.key);
    const isIn = (path: string) =>
      path === held || (kindOf(lease.key) === "dir" && (held === "." || path.startsWith(`${held}/`)));
    const path = paths.find(isIn);
    if (path === undefined) continue;
    throw unfit(
      entry,
      ref,
      `has ${printable(path, 200)}, which ${lease.agentId} is editing there`,
      "wait until it is given back: cotenant lock status",
    );
  }
}

export function unfit(
  { root, worktreeId }: WorktreeEntry,
  ref: string,
  why: string,
  next: string,
  data: Readonly<Record<string, unknown>> = {},
): CotenantError {
  return protectedError(
    `nothing lands on ${shownBranch(ref)}: it is checked out in ${printable(root, 300)}, which ${why}`,
    `${next}; then run it again: the queue keeps its entries; with --push it lands on the remote only`,
    { ref, worktree: root, worktree_id: worktreeId, why, ...data },
  );
}

export function asUnfit(error: unknown, entry: WorktreeEntry, ref: string): unknown {
  if (!(error instanceof CotenantError) || error.code !== "E_LOCK_CONFLICT") return error;
  const holder = String(error.data["holder"] ?? error.data.holders?.[0]?.agent_id ?? "somebody");
  return unfit(
    entry,
    ref,
    `is locked by ${printable(holder)}`,
    "wait until it is given back: cotenant worktree list",
  );
}
