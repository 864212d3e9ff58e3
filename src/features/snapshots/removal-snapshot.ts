import { policyError } from "../../errors/cotenant-error";
import { byteTextOf, fromByteText, isText, toByteText } from "../../git/byte-text";
import type { WorktreeEntry } from "../../identity/worktree-list";
import { printable } from "../../kernel/ids";
import { LONG_MS } from "../worktrees/git-calls";
import type { Kept } from "../worktrees/removal";
import { type AtRisk, isAsCommitted } from "../worktrees/removal-risk";
import { type Captured, isUnchanged } from "./capture";
import { takeSnapshot } from "./new-snapshot";
import { removeSnapshot } from "./retention";
import type { SnapshotContext } from "./snapshot-context";

/** Keeps what a worktree has and nothing else has, before it is removed. `context` is that worktree's own. */
export async function keepBeforeRemoval(
  context: SnapshotContext,
  worktree: WorktreeEntry,
  risk: AtRisk,
  withIgnored: boolean,
): Promise<Kept> {
  const { machine, place, workspace } = context;
  const needsKeeping = risk.isDirty || risk.tips.length > 0 || withIgnored;
  const { descriptor, captured } = needsKeeping
    ? await takeSnapshot(context, {
        automatic: "remove",
        tips: risk.tips,
        withIgnored: withIgnored || workspace.config.values["snapshot.ignored"],
      })
    : { descriptor: null, captured: null };
  await refuseNested(context, captured, worktree).catch(async (error: unknown) => {
    // Nothing goes, so nothing had to be kept.
    if (descriptor !== null) await removeSnapshot(context, descriptor, "not needed").catch(() => {});
    throw error;
  });
  const { git } = machine;
  return {
    snapshotId: descriptor?.snapshot_id ?? null,
    isSame: async (root) => {
      if (captured !== null && descriptor !== null)
        return isUnchanged(machine, { ...place, root }, captured.picture, descriptor.includes_ignored);
      return isAsCommitted({ git, trees: machine.trees }, { ...worktree, root });
    },
  };
}

/** A repository inside is kept by its commit alone: what it has and nobody else has would be gone. */
async function refuseNested(
  { machine, place }: SnapshotContext,
  captured: Captured | null,
  { root }: WorktreeEntry,
): Promise<void> {
  const { git, trees } = machine;
  const listed =
    captured?.parts.byCommit.map(({ path }) => path) ??
    byteTextOf((await git.run(["ls-files", "-z", "-s"], { cwd: root })).stdout)
      .split("\0")
      .filter((line) => line.startsWith("160000 "))
      .map((line) => line.slice(line.indexOf("\t") + 1));
  const leftOut = captured?.parts.leftOut ?? [];
  for (const path of [...listed, ...leftOut.map((one) => one.path)]) {
    if ((await trees.look(`${toByteText(place.root)}/${path}/.git`)) === null) continue;
    // Git is told where to look as text.
    const why = isText(path) ? await onlyThere(git, `${place.root}/${fromByteText(path)}`) : "cannot be read";
    if (why === null) continue;
    const name = printable(fromByteText(path), 300);
    throw policyError(
      `the repository ${name} inside ${why}, and a snapshot does not hold it`,
      "push or move that repository's work first",
      { path: name, root },
    );
  }
}

/** What would be lost with a repository; null where its remotes have everything. */
async function onlyThere(git: SnapshotContext["machine"]["git"], cwd: string): Promise<string | null> {
  const options = { cwd, timeoutMs: LONG_MS };
  const status = await git.run(
    ["status", "--porcelain", "--ignored=no", "--ignore-submodules=none"],
    options,
  );
  if (status.status !== 0) return "cannot be read";
  if (status.stdout.length > 0) return "has changes of its own";
  const stash = await git.run(["rev-parse", "--verify", "--quiet", "refs/stash"], options);
  if (stash.status === 0) return "has a stash";
  const args = ["rev-list", "--max-count=1", "HEAD", "--branches", "--tags", "--not", "--remotes"];
  const lone = await git.run(args, options);
  return lone.status !== 0 || lone.stdout.length > 0 ? "has commits that no remote has" : null;
}
