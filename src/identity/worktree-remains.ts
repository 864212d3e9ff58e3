import { CotenantError, fileFailure } from "../errors/cotenant-error";
import type { Git } from "../platform/git";
import { gitWords } from "../platform/git-answers";
import type { Platform } from "../platform/platform";
import { decode, joinPath } from "./path-text";
import { DATA_DIRECTORY, PROVISIONAL_GITIGNORE } from "./worktree-file";

/** The worktree's own identity, what was set aside of it, and writes that were not finished. */
const OWN = /^worktree\.json(?:\.damaged-\d+)?$|\.new-[0-9a-f]{12}$/;

/** What is to go from one worktree's data plane, and what stays there. */
export interface Remains {
  readonly directory: string;
  readonly going: readonly string[];
  readonly staying: readonly string[];
}

/** Null where there is no data plane, or something else in its place. What Git has is never to go. */
export async function remainsIn(
  platform: Platform,
  git: Git,
  worktree: { readonly root: string; readonly gitDir: string },
  isScaffold: (name: string, text: string) => boolean,
): Promise<Remains | null> {
  const { files } = platform;
  const directory = joinPath(worktree.root, DATA_DIRECTORY);
  if ((await files.lstat(directory))?.kind !== "directory") return null;
  const tracked = await trackedNames(git, worktree);
  const going: string[] = [];
  const staying: string[] = [];
  try {
    for (const name of ((await files.readDirectory(directory)) ?? []).sort()) {
      const path = joinPath(directory, name);
      const isFile = (await files.lstat(path))?.kind === "file" && !tracked.has(name);
      const text = isFile && !OWN.test(name) ? decode((await files.readFile(path)) ?? new Uint8Array()) : "";
      const isGoing = isFile && (OWN.test(name) || text === PROVISIONAL_GITIGNORE || isScaffold(name, text));
      (isGoing ? going : staying).push(name);
    }
  } catch (error) {
    throw fileFailure(error, "looking through the data plane", directory);
  }
  return { directory, going, staying };
}

/** Each file, and the directory if nothing is left in it. */
export async function clearRemains(platform: Platform, { directory, going }: Remains): Promise<void> {
  try {
    for (const name of going) await platform.files.unlink(joinPath(directory, name));
    await platform.files.removeDirectory(directory);
  } catch (error) {
    throw fileFailure(error, "removing what belonged to this worktree", directory);
  }
}

async function trackedNames(
  git: Git,
  { root, gitDir }: { readonly root: string; readonly gitDir: string },
): Promise<Set<string>> {
  const args = ["--git-dir", gitDir, "--work-tree", root, "ls-files", "-z", "--", DATA_DIRECTORY];
  const { status, stdout, stderr } = await git.run(args, { cwd: root });
  if (status !== 0) {
    throw new CotenantError("E_GIT", `Git cannot say what it has in ${joinPath(root, DATA_DIRECTORY)}`, {
      data: { git: gitWords(stderr), status },
    });
  }
  const names = decode(stdout).split("\0");
  return new Set(names.map((path) => path.slice(DATA_DIRECTORY.length + 1).split("/")[0]!));
}
