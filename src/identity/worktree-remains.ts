import { during } from "../errors/cotenant-error";
import type { Git } from "../platform/git";
import type { Platform } from "../platform/platform";
import { decode, joinPath } from "./path-text";
import { trackedBelow } from "./tracked";
import { DATA_DIRECTORY, PROVISIONAL_GITIGNORE } from "./worktree-file";

/** The worktree's own identity, what was set aside of it, and writes that were not finished. */
const OWN = /^cotenant-worktree\.json(?:\.damaged-\d+|\.new-[0-9a-f]{12})?$/;
/** Where earlier versions had it. */
const OWN_DATA = /^worktree\.json(?:\.damaged-\d+)?$|\.new-[0-9a-f]{12}$/;

/** What is to go of one worktree's own, and what stays in its data plane. */
export interface Remains {
  /** The data plane's, which goes if nothing is left in it; null where there is none, or something else in its place. */
  readonly directory: string | null;
  readonly going: readonly string[];
  readonly staying: readonly string[];
}

/** What Git has is never to go. */
export async function remainsIn(
  platform: Platform,
  git: Git,
  worktree: { readonly root: string; readonly gitDir: string },
  isScaffold: (name: string, text: string) => boolean,
): Promise<Remains> {
  const { files } = platform;
  const directory = joinPath(worktree.root, DATA_DIRECTORY);
  const own = ((await files.readDirectory(worktree.gitDir)) ?? []).filter((name) => OWN.test(name)).sort();
  const going = own.map((name) => joinPath(worktree.gitDir, name));
  if ((await files.lstat(directory))?.kind !== "directory") return { directory: null, going, staying: [] };
  const names = await trackedBelow(git, worktree, DATA_DIRECTORY);
  const tracked = new Set(names.map((path) => path.slice(DATA_DIRECTORY.length + 1).split("/")[0]!));
  const staying: string[] = [];
  await during("looking through the data plane", directory, async () => {
    for (const name of ((await files.readDirectory(directory)) ?? []).sort()) {
      const path = joinPath(directory, name);
      const isFile = (await files.lstat(path))?.kind === "file" && !tracked.has(name);
      const isOwn = OWN_DATA.test(name);
      const text = isFile && !isOwn ? decode((await files.readFile(path)) ?? new Uint8Array()) : "";
      const isGoing = isFile && (isOwn || text === PROVISIONAL_GITIGNORE || isScaffold(name, text));
      (isGoing ? going : staying).push(path);
    }
  });
  return { directory, going, staying };
}

/** Each file, and the directory if nothing is left in it. */
export async function clearRemains(platform: Platform, { directory, going }: Remains): Promise<void> {
  let at = directory ?? "";
  await during("removing what belonged to this worktree", at, async () => {
    for (const path of going) {
      at = path;
      await platform.files.unlink(path);
    }
    if (directory !== null) await platform.files.removeDirectory(directory);
  });
}
