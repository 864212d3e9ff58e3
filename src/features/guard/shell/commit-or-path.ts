import type { World } from "../world";
import type { ShellWrite } from "./walk";
import { singleOf } from "./words";

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
