import { toByteText } from "../../git/byte-text";
import type { ObjectId } from "../../git/object-name";
import { currentBranch } from "../../identity/branch";
import { decode, joinPath } from "../../identity/path-text";
import { overwriteFile } from "../../platform/overwrite-file";
import { ask, LONG_MS } from "../worktrees/git-calls";
import { machineOf, type Yard } from "../worktrees/place";
import { removeTree } from "../worktrees/tree-removal";

/** Where a scratch worktree is: its files, and what Git knows of it. */
export interface ScratchPlace {
  readonly root: string;
  readonly gitDir: string;
}

/** Checks may have set anything in the repository's own configuration. */
const PLAIN = [
  ...["-c", "submodule.recurse=false"],
  ...["-c", "core.hooksPath=/dev/null"],
  ...["-c", "advice.detachedHead=false"],
  ...["-c", "core.sparseCheckout=false"],
];

/** Named, and not found by Git: without its `.git` the next repository above would be taken for this one. */
const placeOf = ({ root, gitDir }: ScratchPlace) => [...PLAIN, "--git-dir", gitDir, "--work-tree", root];

/** This commit, and nothing else but what Git ignores. */
export async function checkOutInto(yard: Yard, place: ScratchPlace, commit: ObjectId): Promise<void> {
  const { git, platform } = machineOf(yard);
  const { root, gitDir } = place;
  // Of a Git that was killed: nobody else is in it.
  for (const name of ["index.lock", "HEAD.lock"]) await platform.files.unlink(joinPath(gitDir, name));
  if (await hasBlindSpots(yard, place)) await platform.files.unlink(joinPath(gitDir, "index"));
  const options = { cwd: root, timeoutMs: LONG_MS };
  const args = [...placeOf(place), "checkout", "--quiet", "--detach", "--force", commit, "--"];
  await ask(git, args, options, "checking out what is to land");
  await ask(git, [...placeOf(place), "clean", "-ffdq"], options, "clearing a worktree for checks");
}

/** Files that Git was told not to look at would be left as an earlier check had them. */
async function hasBlindSpots(yard: Yard, place: ScratchPlace): Promise<boolean> {
  const { git } = machineOf(yard);
  const options = { cwd: place.root, timeoutMs: LONG_MS };
  const { status, stdout } = await git.run([...placeOf(place), "ls-files", "-v", "-z"], options);
  return status !== 0 || /(?:^|\0)[a-zS] /.test(decode(stdout));
}

/** Makes it what it was before checks: a worktree of this repository, on no branch. False where Git has forgotten it. */
export async function mendScratch(yard: Yard, place: ScratchPlace): Promise<boolean> {
  const { platform, git } = machineOf(yard);
  const { root, gitDir } = place;
  if ((await platform.files.stat(joinPath(gitDir, "HEAD"))) === null) return false;
  await mendRoot(yard, place);
  if ((await currentBranch(platform, git, gitDir)) === null) return true;
  // A branch that a check has made and is on would be in use, and nobody else could check it out.
  const options = { cwd: root, timeoutMs: LONG_MS };
  await git.run([...placeOf(place), "checkout", "--quiet", "--detach", "--force"], options);
  return true;
}

async function mendRoot(yard: Yard, { root, gitDir }: ScratchPlace): Promise<void> {
  const { trees } = yard;
  const { files } = machineOf(yard).platform;
  const place = toByteText(root);
  const pointer = `gitdir: ${gitDir}\n`;
  const isDirectory = (await trees.look(place))?.kind === "directory";
  if (!isDirectory) {
    await trees.unlink(place);
    await trees.makeDirectory(place, 0o755);
  }
  const path = joinPath(root, ".git");
  const isFile = (await trees.look(toByteText(path)))?.kind === "file";
  const said = isFile ? await files.readFile(path) : null;
  if (said !== null && decode(said) === pointer) return;
  await removeTree(trees, toByteText(path));
  await overwriteFile(files, path, pointer, 0o644);
}
