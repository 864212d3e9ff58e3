import { readDotGit } from "../../identity/git-directory";
import type { WorktreeEntry } from "../../identity/worktree-list";
import type { GitPlace, LastingGit } from "../../platform/git";
import type { Platform } from "../../platform/platform";
import { writeNew } from "../../platform/write-new";

type PinnedWorktree = Pick<WorktreeEntry, "root" | "gitDir">;

/**
 * Git for one worktree, whatever an agent makes of the `.git` in it. Without that file Git would look in the folders above, and
 * take the changes away that somebody has in the repository that it finds there.
 */
export function pinnedTo({ root, gitDir }: PinnedWorktree, git: LastingGit): LastingGit {
  const pinned = <O extends GitPlace>(args: readonly string[], options: O): O =>
    options.cwd !== root || args.includes("--git-dir")
      ? options
      : { ...options, env: { GIT_DIR: gitDir, GIT_WORK_TREE: root, ...options.env } };
  return {
    run: (args, options) => git.run(args, pinned(args, options)),
    start: (args, options) => git.start(args, pinned(args, options)),
  };
}

/** Whether there is a worktree at all: an agent may have removed it, or moved it away. */
export async function isStanding({ files }: Platform, { root, gitDir }: PinnedWorktree): Promise<boolean> {
  const [folder, head] = [await files.lstat(root), await files.lstat(`${gitDir}/HEAD`)];
  return folder?.kind === "directory" && head !== null;
}

/**
 * Makes a worktree's `.git` lead to where it belongs again. A repository that stands in its way is kept beside the worktree's
 * own files in the repository. Answers what was done; null where all is well.
 */
export async function mendLink(platform: Platform, place: PinnedWorktree): Promise<string | null> {
  const { files, clock } = platform;
  const { root, gitDir } = place;
  if (!(await isStanding(platform, place))) return null;
  const path = `${root}/.git`;
  const entry = await files.lstat(path);
  const found = entry?.kind === "file" ? await readDotGit(files, root) : null;
  if (found !== null && found !== "odd" && found.gitDir === (await files.realPath(gitDir))) return null;
  const kept = entry === null || entry.kind === "file" ? null : `${gitDir}/replaced-${clock.wallMs()}`;
  if (kept !== null) await files.rename(path, kept);
  else await files.unlink(path);
  await writeNew(files, path, `gitdir: ${gitDir}\n`, 0o644);
  return kept === null
    ? "the link in its worktree to the repository was gone, and was made again"
    : `a repository of its own stood in its worktree; its .git is kept as ${kept}`;
}
