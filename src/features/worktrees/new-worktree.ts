import { CotenantError, policyError } from "../../errors/cotenant-error";
import { toByteText } from "../../git/byte-text";
import { below, normalPath, parentOf } from "../../identity/path-text";
import { listWorktrees } from "../../identity/worktree-list";
import type { WorktreeId } from "../../kernel/ids";
import { printable } from "../../kernel/ids";
import { makeWorktree, placeTaken, settleMakings } from "./construction";
import { askMaybe } from "./git-calls";
import { copyIgnored } from "./ignored-files";
import { checkBranch, defaultPlace } from "./names";
import { dropBranch, type NewBranch } from "./new-branch";
import { machineOf, oneAtATime, realPlace, type Yard } from "./place";
import { removeWorktree } from "./removal";
import { isAsCommitted } from "./removal-risk";

export interface Creation {
  readonly branch: string;
  /** Where a new branch starts; null: where the caller stands. */
  readonly base: string | null;
  /** Absolute; null: beside the main worktree. */
  readonly place: string | null;
  readonly issueId: string | null;
  /** Whether `worktree.copy` is honoured. */
  readonly copies: boolean;
}

export interface Created {
  readonly worktreeId: WorktreeId;
  readonly root: string;
  readonly branch: string;
  /** Null where the branch was there before. */
  readonly newBranch: NewBranch | null;
  readonly commit: string;
  readonly copied: readonly string[];
}

/** A new worktree on a branch, with its files and with what `worktree.copy` names. */
export async function createWorktree(yard: Yard, creation: Creation): Promise<Created> {
  const { git } = machineOf(yard);
  const { repository, config } = yard.workspace;
  if (config.values["worktree.mode"] === "off")
    throw policyError(
      "this repository works in one directory: no worktrees are made for it",
      "work here, or let whoever set worktree.mode = off change it",
      { setting: "worktree.mode" },
    );
  const branch = checkBranch(creation.branch);
  await settleMakings(yard);
  const isNewBranch = !(await refuseCheckedOut(yard, branch));
  if (!isNewBranch && creation.base !== null)
    throw new CotenantError("E_USAGE", `branch ${printable(branch)} exists: it starts where it is`, {
      hint: "leave out --base, or name a new branch",
      data: { branch },
    });
  if (isNewBranch) await refuseBranch(yard, branch);
  const commit = await startingPoint(yard, branch, isNewBranch, creation.base);
  const configured = config.values["worktree.directory"];
  const mainRoot = repository.mainWorktreeRoot ?? parentOf(repository.commonDir) ?? repository.commonDir;
  const place =
    creation.place === null ? defaultPlace(mainRoot, configured, branch) : normalPath(creation.place);
  await refusePlace(yard, place);
  let copied: readonly string[] = [];
  const { worktreeId, newBranch } = await makeWorktree(yard, {
    place,
    branch,
    isNewBranch,
    commit,
    record: { agentId: yard.session.actor.agentId, issueId: creation.issueId, snapshotId: null },
    fill: async (root, run) => {
      // Submodules of a new worktree are not there yet: with submodule.recurse Git would look for them.
      await run(["-c", "submodule.recurse=false", "reset", "--hard", "--quiet"], "filling a worktree");
      const source = repository.mainWorktreeRoot ?? repository.worktreeRoot;
      if (creation.copies)
        copied = await copyIgnored({ git, trees: yard.trees }, source, root, config.values["worktree.copy"]);
    },
  });
  const root = (await machineOf(yard).platform.files.realPath(place)) ?? place;
  return { worktreeId, root, branch, newBranch, commit, copied };
}

/** As if it had not been made: for one in which nothing has happened yet. */
export async function undoCreation(yard: Yard, { root, newBranch }: Created): Promise<void> {
  const { platform, git } = machineOf(yard);
  const all = await listWorktrees(platform, git, yard.workspace.repository);
  const entry = all.find((one) => one.root === root);
  if (entry === undefined) return;
  const isSame = (at: string) => isAsCommitted({ git, trees: yard.trees }, { ...entry, root: at });
  await removeWorktree(yard, entry, { snapshotId: null, isSame });
  if (newBranch !== null) await oneAtATime(yard, () => dropBranch(yard, newBranch));
}

/** Whether the branch exists. One that is checked out somewhere cannot be checked out twice. */
async function refuseCheckedOut(yard: Yard, branch: string): Promise<boolean> {
  const { platform, git } = machineOf(yard);
  const { repository } = yard.workspace;
  for (const worktree of await listWorktrees(platform, git, repository)) {
    if (worktree.branch !== branch || !worktree.exists) continue;
    throw policyError(
      `branch ${printable(branch)} is checked out in ${printable(worktree.root, 500)}`,
      "work there, or name another branch",
      { branch, root: worktree.root, worktree_id: worktree.worktreeId },
    );
  }
  const args = ["show-ref", "--verify", "--quiet", `refs/heads/${branch}`];
  return (await git.run(args, { cwd: repository.worktreeRoot })).status === 0;
}

/** Git keeps names as paths: neither a part of one that exists, nor one that is a part of it. */
export async function refuseBranch(yard: Yard, branch: string, hint = "name another branch"): Promise<void> {
  const { git } = machineOf(yard);
  const cwd = yard.workspace.repository.worktreeRoot;
  const parts = branch.split("/");
  const above = parts.slice(0, -1).map((_, i) => parts.slice(0, i + 1).join("/"));
  const args = [
    "for-each-ref",
    "--format=%(refname:lstrip=2)",
    ...[...above, branch].map((name) => `refs/heads/${name}`),
  ];
  const listed = (await askMaybe(git, args, { cwd }))?.split("\n") ?? [];
  const taken = listed.find(
    (name) => above.includes(name) || name === branch || name.startsWith(`${branch}/`),
  );
  if (taken === undefined) return;
  const words =
    taken === branch
      ? `branch ${printable(branch)} exists already`
      : `branch ${printable(branch)} cannot be made beside ${printable(taken)}`;
  throw policyError(words, hint, { branch, taken });
}

async function startingPoint(
  yard: Yard,
  branch: string,
  isNew: boolean,
  base: string | null,
): Promise<string> {
  const { git } = machineOf(yard);
  const cwd = yard.workspace.repository.worktreeRoot;
  const from = isNew ? (base ?? "HEAD") : `refs/heads/${branch}`;
  const args = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${from}^{commit}`];
  const commit = await askMaybe(git, args, { cwd });
  if (commit !== null && commit !== "") return commit;
  if (base === null)
    throw policyError("there is no commit yet that a worktree could start at", "make a first commit");
  throw new CotenantError("E_NOT_FOUND", `there is no commit "${printable(base)}" to start at`, {
    hint: "name a branch, a tag or a commit that is in this clone",
    data: { base: printable(base) },
  });
}

/** It must be free, and lie where no other worktree takes it for its own content. */
export async function refusePlace(yard: Yard, place: string): Promise<void> {
  const { platform, git } = machineOf(yard);
  const { trees, workspace } = yard;
  const there = await trees.look(toByteText(place));
  const isEmpty = there?.kind === "directory" && (await trees.list(toByteText(place)))?.length === 0;
  if (there !== null && !isEmpty) throw placeTaken(place);
  const real = await realPlace(platform.files, place);
  const { commonDir } = workspace.repository;
  for (const { root, exists } of await listWorktrees(platform, git, workspace.repository)) {
    const inside = exists ? below(real, root) : null;
    if (inside === null && below(real, commonDir) === null) continue;
    const isIgnored =
      below(real, commonDir) === null &&
      (await git.run(["check-ignore", "--quiet", "--", `${inside}/`], { cwd: root })).status === 0;
    if (isIgnored) continue;
    throw policyError(
      `${printable(place, 500)} is inside ${printable(root, 500)}, which would take it for its own content`,
      "name a place outside the repository with --path, or leave it out",
      { path: place, root },
    );
  }
}
