import { type ByteText, bytesOf, byteTextOf } from "../../git/byte-text";
import type { Git } from "../../platform/git";
import type { Trees } from "../../platform/trees";
import { LONG_MS } from "../worktrees/git-calls";
import { gitPlace, type TreePlace } from "./listing";

/** Git's own directories, and a data plane in which nothing is but one worktree's identity. */
const OURS_OR_GITS = /(?:^|\/)\.git$|^\.cotenant$/i;

/** Something is very odd with more of them, one in the other. */
const MOST_LEVELS = 200;

/** What Git does not list, and does not ignore either. */
export interface Unlisted {
  /** Directories that no listed file is in: Git keeps no trace of them, people miss them. */
  readonly unlisted: ByteText[];
  /** Pipes, sockets and devices. */
  readonly odd: ByteText[];
}

/** `fresh`: where to look; in the others nothing has changed since the last time. */
export async function findUnlisted(
  {
    git,
    trees,
    place,
    root,
  }: {
    readonly git: Git;
    readonly trees: Trees;
    readonly place: TreePlace;
    readonly root: ByteText;
  },
  fresh: readonly ByteText[],
  isKnown: (directory: ByteText) => boolean,
  withIgnored: boolean,
): Promise<Unlisted> {
  const unlisted: ByteText[] = [];
  const odd: ByteText[] = [];
  let look = [...fresh];
  for (let level = 0; look.length > 0 && level < MOST_LEVELS; level++) {
    const candidates: ByteText[] = [];
    for (const directory of look) {
      const inside = await trees.list(directory === "" ? root : `${root}/${directory}`);
      for (const { name, kind } of inside ?? []) {
        const path = directory === "" ? name : `${directory}/${name}`;
        if (kind === "directory" && !OURS_OR_GITS.test(path) && !isKnown(path)) candidates.push(`${path}/`);
        else if (kind === "other") candidates.push(path);
      }
    }
    const ours = withIgnored ? candidates : await notIgnored(git, place, candidates);
    look = [];
    odd.push(...ours.filter((path) => !path.endsWith("/")));
    for (const path of ours.filter((one) => one.endsWith("/"))) {
      const directory = path.slice(0, -1);
      // A repository of its own, which Git lists by itself where it matters.
      if ((await trees.look(`${root}/${directory}/.git`)) !== null) continue;
      unlisted.push(directory);
      look.push(directory);
    }
  }
  return { unlisted, odd };
}

async function notIgnored(git: Git, place: TreePlace, paths: readonly ByteText[]): Promise<ByteText[]> {
  if (paths.length === 0) return [];
  const { status, stdout } = await git.run([...gitPlace(place), "check-ignore", "-z", "--stdin"], {
    cwd: place.root,
    input: bytesOf(paths.map((path) => `${path}\0`).join("")),
    timeoutMs: LONG_MS,
  });
  // 1: none of them is.
  if (status !== 0 && status !== 1) return [];
  const ignored = new Set(byteTextOf(stdout).split("\0"));
  return paths.filter((path) => !ignored.has(path));
}
