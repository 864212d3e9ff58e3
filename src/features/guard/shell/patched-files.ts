import { repositoryOf } from "../worktree";
import type { World } from "../world";

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
  const { status, stdout } = await git.run(["apply", "--numstat", "-z", ...args], { cwd });
  const lines = status === 0 ? new TextDecoder().decode(stdout).split("\0").slice(0, -1) : [];
  // Lines added, lines removed, name.
  return lines.map((line) => line.split("\t").slice(2).join("\t"));
}
