import { type ByteText, fromByteText, toByteText } from "../../git/byte-text";
import type { PathChange } from "../../git/commit-text";
import { decode } from "../../identity/path-text";
import type { WorktreeEntry } from "../../identity/worktree-list";
import type { Git } from "../../platform/git";
import type { Trees } from "../../platform/trees";
import { LONG_MS } from "../worktrees/git-calls";

/**
 * Whether anything there is staged or changed; null where Git cannot say. Files that nobody has added are no matter. Nor
 * is what a submodule has checked out: no landing touches that, and most are behind right after one.
 */
export async function isChanged(
  git: Git,
  { root, gitDir }: Pick<WorktreeEntry, "root" | "gitDir">,
  pathspecs: readonly string[] = [],
): Promise<boolean | null> {
  const options = ["--porcelain=v2", "-z", "--untracked-files=no", "--ignore-submodules=none"];
  const args = ["status", ...options, "--", ...pathspecs];
  const { status, stdout } = await git.run(["--git-dir", gitDir, "--work-tree", root, ...args], {
    cwd: root,
    // Git may not write its index for it, nor take a lock.
    env: { GIT_OPTIONAL_LOCKS: "0" },
    timeoutMs: LONG_MS,
  });
  if (status !== 0) return null;
  const records = decode(stdout)
    .split("\0")
    .filter((record) => record !== "");
  return records.some((record) => !/^1 \.M S/.test(record));
}

/**
 * What is where a new file would go, and does not make room by itself: files that nobody has committed, ignored ones among
 * them, and directories with such in them. Tracked files that go with the landing are in nobody's way.
 */
export async function obstaclesIn(
  trees: Trees,
  root: ByteText,
  changes: readonly PathChange[],
): Promise<string[]> {
  const going = new Set(changes.filter(({ status }) => status === "deleted").map(({ path }) => path));
  const found = new Set<string>();
  for (const { path, status } of changes) {
    if (status !== "added") continue;
    const obstacle = await obstacleAt(trees, root, path, going);
    if (obstacle !== null) found.add(obstacle);
  }
  return [...found];
}

async function obstacleAt(
  trees: Trees,
  root: ByteText,
  path: string,
  going: ReadonlySet<string>,
): Promise<string | null> {
  const parts = path.split("/");
  for (let count = 1; count <= parts.length; count++) {
    const at = parts.slice(0, count).join("/");
    const entry = await trees.look(`${root}/${toByteText(at)}`);
    // A file or a link that goes makes room for all of this, and nothing below it is there now.
    if (entry === null || (entry.kind !== "directory" && going.has(at))) return null;
    if (entry.kind !== "directory") return at;
  }
  return staying(trees, root, path, going);
}

/** The first thing in a directory that does not go; null where nothing stays. */
async function staying(
  trees: Trees,
  root: ByteText,
  directory: string,
  going: ReadonlySet<string>,
): Promise<string | null> {
  for (const { name, kind } of (await trees.list(`${root}/${toByteText(directory)}`)) ?? []) {
    const path = `${directory}/${fromByteText(name)}`;
    if (kind !== "directory") {
      if (!going.has(path)) return path;
      continue;
    }
    // What a submodule has checked out is a repository of its own.
    const inside = going.has(path) ? path : await staying(trees, root, path, going);
    if (inside !== null) return inside;
  }
  return null;
}
