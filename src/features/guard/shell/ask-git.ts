import { gitList, gitText } from "../../../platform/git-answers";
import { repositoryOf } from "../worktree";
import type { World } from "../world";
import type { ShellWrite } from "./walk";
import { singleOf } from "./words";

/** What of a command line only Git can tell. */

/**
 * One word of `git checkout` or `git reset` is a commit if it names one, else a path: Git's own rule, by which Git is
 * asked. What is neither may be a branch that the same command line makes, or that only a remote has: a move of HEAD.
 */
export async function settleWords(world: World, writes: readonly ShellWrite[]): Promise<ShellWrite[]> {
  const settled: ShellWrite[] = [];
  for (const write of writes) {
    const { isPathUnlessCommit, use, ...path } = write;
    const word = use === undefined ? singleOf(write.value) : use.base;
    if (isPathUnlessCommit === undefined || word === null || write.cwd === null) settled.push(write);
    else if (use === undefined) {
      if (!(await namesCommit(world, write.cwd, word))) settled.push(path);
    } else if (!(await namesCommit(world, write.cwd, word)) && (await isTracked(world, write.cwd, word)))
      settled.push(path);
    else settled.push({ ...write, value: [] });
  }
  return settled;
}

async function namesCommit(world: World, cwd: string, word: string): Promise<boolean> {
  // `-` is the branch before this one.
  return (
    word === "-" ||
    (await succeeds(world, cwd, "rev-parse", "--verify", "--quiet", "--end-of-options", `${word}^{tree}`))
  );
}

function isTracked(world: World, cwd: string, path: string): Promise<boolean> {
  return succeeds(world, cwd, "ls-files", "--error-unmatch", "--", path);
}

async function succeeds({ git }: World, cwd: string, ...args: string[]): Promise<boolean> {
  try {
    return (await git.run(args, { cwd })).status === 0;
  } catch {
    // No such directory.
    return false;
  }
}

/** Longer patches are no text that anybody wrote; what they did is seen afterwards. */
const LARGEST = 1 << 20;

/**
 * The files that `git apply` writes for a patch, both names of what it renames. Git itself reads it, and applies nothing.
 * None where there is nothing to be read: the command is compared afterwards in any case, for it may write the patch first.
 */
export async function patchedFiles(
  world: World,
  patch: string,
  cwd: string,
  options: readonly string[],
): Promise<string[]> {
  const root = (await repositoryOf(world, cwd))?.worktreeRoot;
  if (root === undefined) return [];
  try {
    const stat = await world.platform.files.stat(patch);
    if (stat?.kind !== "file" || stat.size > LARGEST) return [];
    // Git names what a file is called afterwards: backwards, that is what it was called before.
    const names = [];
    for (const way of [[], ["--reverse"]])
      names.push(...(await namesIn(world, cwd, [...options, ...way, "--", patch])));
    return [...new Set(names)].map((name) => `${root}/${name}`);
  } catch {
    // No such directory, or none of ours.
    return [];
  }
}

async function namesIn({ git }: World, cwd: string, args: readonly string[]): Promise<string[]> {
  const lines = gitList(await gitText(git, ["apply", "--numstat", "-z", ...args], { cwd }));
  // Lines added, lines removed, name.
  return lines.map((line) => line.split("\t").slice(2).join("\t"));
}
