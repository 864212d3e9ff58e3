import { resolveFrom } from "../../identity/path-text";
import { printable } from "../../kernel/ids";
import { isFullRefName } from "../../kernel/keys";
import type { GuardedWorktree } from "./worktree";

const MOST_TRIES = 100;
/** Longer names are not printed whole. */
const LONGEST = 200;

/** A branch for a worktree of one's own that can be made as it is printed: the one that was wanted, if it can be. */
export async function branchToOffer(place: GuardedWorktree, wanted: string | null): Promise<string> {
  const [branches, directories] = [await branchesOf(place), await directoriesOf(place)];
  const isFree = (name: string) =>
    !branches.some(
      (there) => there === name || there.startsWith(`${name}/`) || name.startsWith(`${there}/`),
    ) &&
    // Directories of worktrees are named after branches.
    !directories.some((there) => there.endsWith(name.slice(name.lastIndexOf("/") + 1)));
  if (wanted !== null && isName(wanted) && isFree(wanted)) return wanted;
  const id = place.who.sessionId.replace(/[^0-9A-Za-z]/g, "").slice(0, 8) || "mine";
  const first = branches.includes("work") ? `work-${id}` : `work/${id}`;
  for (let i = 2; i < MOST_TRIES; i++) {
    const name = i === 2 ? first : `${first}-${i - 1}`;
    if (isFree(name)) return name;
  }
  return first;
}

function isName(name: string): boolean {
  return (
    !name.startsWith("-") &&
    name !== "HEAD" &&
    isFullRefName(`refs/heads/${name}`) &&
    printable(name, LONGEST) === name
  );
}

async function branchesOf({ world, repository }: GuardedWorktree): Promise<string[]> {
  const args = ["for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads"];
  const { stdout } = await world.git.run(args, { cwd: repository.worktreeRoot });
  return new TextDecoder()
    .decode(stdout)
    .split("\n")
    .filter((name) => name !== "");
}

async function directoriesOf({ world, repository, settings }: GuardedWorktree): Promise<readonly string[]> {
  const { mainWorktreeRoot } = repository;
  if (mainWorktreeRoot === null) return [];
  const { worktreeDirectory: configured } = settings;
  const parent =
    configured === null ? `${mainWorktreeRoot}.worktrees` : resolveFrom(mainWorktreeRoot, configured);
  try {
    return (await world.platform.files.readDirectory(parent)) ?? [];
  } catch {
    return [];
  }
}
