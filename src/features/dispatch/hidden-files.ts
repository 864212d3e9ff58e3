import { type ByteText, bytesOf, byteTextOf, fromByteText, toByteText } from "../../git/byte-text";
import { ask, LONG_MS } from "../worktrees/git-calls";
import { clearLocks } from "./branches";
import type { Station } from "./slots";

/** Files that Git was told not to look at (`assume-unchanged`, `skip-worktree`), and that are there. */
export async function hiddenFiles({ workspace, yard, root }: Station): Promise<ReadonlySet<ByteText>> {
  const options = { cwd: root, timeoutMs: LONG_MS };
  const doing = "finding files that Git does not look at";
  const said = byteTextOf(await ask(workspace.surroundings.git, ["ls-files", "-v", "-z"], options, doing));
  const hidden = new Set<ByteText>();
  // A sparse checkout has left the others out.
  for (const [, path] of said.matchAll(/(?:^|\0)[a-zS] ([^\0]+)/g))
    if ((await yard.trees.look(`${toByteText(root)}/${path}`)) !== null) hidden.add(path!);
  return hidden;
}

/**
 * Has Git look again at what an agent has hidden from it: its changes would be in no commit, and in the way of the next issue.
 * What was hidden `before`, as by `worktree.setup`, stays so. Answers the names.
 */
export async function unhide(station: Station, before: ReadonlySet<ByteText>): Promise<string[]> {
  const paths = [...(await hiddenFiles(station))].filter((path) => !before.has(path));
  if (paths.length === 0) return [];
  await clearLocks(station);
  const input = bytesOf(paths.map((path) => `${path}\0`).join(""));
  const options = { cwd: station.root, timeoutMs: LONG_MS, input };
  for (const flag of ["--no-assume-unchanged", "--no-skip-worktree"]) {
    const args = ["update-index", flag, "-z", "--stdin"];
    await ask(station.workspace.surroundings.git, args, options, "looking at what an agent has hidden");
  }
  return paths.map(fromByteText);
}

/** Which folders a sparse checkout is of, as Git lists them; null where all of them are there. */
export async function sparseFolders({ workspace, root }: Station): Promise<string | null> {
  const options = { cwd: root, timeoutMs: LONG_MS };
  const { status, stdout } = await workspace.surroundings.git.run(["sparse-checkout", "list"], options);
  return status === 0 ? fromByteText(byteTextOf(stdout)) : null;
}

/** What an agent has left out of its checkout comes back: the next one would miss it. False where all is as `before`. */
export async function restoreFolders(station: Station, before: string | null): Promise<boolean> {
  if ((await sparseFolders(station)) === before) return false;
  await clearLocks(station);
  const options = { cwd: station.root, timeoutMs: LONG_MS, ...(before === null ? {} : { input: before }) };
  const verb = before === null ? ["disable"] : ["set", "--stdin"];
  const { git } = station.workspace.surroundings;
  await ask(
    git,
    ["sparse-checkout", ...verb],
    options,
    "bringing back what an agent left out of its checkout",
  );
  return true;
}
