import type { Workspace } from "../coordinator/workspace";
import { commitOf } from "../enforce/divergence";
import { type ByteText, toByteText } from "../objects/byte-text";
import type { ObjectDatabase } from "../objects/database";
import type { ObjectId } from "../objects/object-name";
import { type Leaf, lookUp } from "../objects/tree-editing";
import type { FileStat } from "../platform/platform";
import { AgentIndex, type IndexPlace } from "./agent-index";
import { sameLeaf } from "./draft";

export interface TidiedFile {
  readonly path: string;
  /** `restored` to what HEAD has, `removed` because HEAD has none, or left as it is, and why. */
  readonly outcome: "restored" | "removed" | "differs" | "staged";
}

/**
 * SPEC §11, `--settle`: of the published paths, those whose files in the working tree are just as they were published go
 * back to what HEAD has: nothing is lost by it, for it is on the branch. The shared index is not touched; whatever
 * somebody has staged is left alone.
 */
export async function settleWorkingFiles(
  workspace: Workspace,
  objects: ObjectDatabase,
  place: IndexPlace,
  tip: ObjectId,
  paths: readonly string[],
): Promise<TidiedFile[]> {
  const { git } = workspace.surroundings;
  const head = await commitOf(git, workspace.repository.worktreeRoot, "HEAD");
  const headTree = head === null ? null : (await objects.readCommit(head)).tree;
  const published = await lookUp(objects, (await objects.readCommit(tip)).tree, paths);
  const inHead = await lookUp(objects, headTree, paths);
  const staged = await stagedPaths(workspace, paths);
  const index = await AgentIndex.open(place);
  try {
    const tidied: TidiedFile[] = [];
    for (const path of paths) {
      const is = { published: published.get(path) ?? null, head: inHead.get(path) ?? null };
      const outcome = staged.has(path) ? "staged" : await settleOne(place, index, path, is);
      if (outcome !== null) tidied.push({ path, outcome });
    }
    return tidied;
  } finally {
    await index.close();
  }
}

/** Null where there is nothing to do: HEAD has what was published. */
async function settleOne(
  place: IndexPlace,
  index: AgentIndex,
  path: string,
  is: { readonly published: Leaf | null; readonly head: Leaf | null },
): Promise<TidiedFile["outcome"] | null> {
  if (sameLeaf(is.published, is.head)) return null;
  const { files } = place.platform;
  const name = toByteText(path);
  const at = `${place.worktreeRoot}/${path}`;
  const before = await files.lstat(at);
  if (is.published === null ? before !== null : before === null) return "differs";
  if (is.published !== null && !(await isAs(index, name, is.published))) return "differs";
  const aside = `${at}.cotenant-${suffixOf(place)}`;
  if (before !== null) {
    // Out of the way first: what an editor saves in the meantime then stands under the name, and stays.
    await files.rename(at, aside);
    if (!isUntouched(before, await files.lstat(aside))) {
      if ((await files.lstat(at)) === null) await files.rename(aside, at);
      return "differs";
    }
  }
  if (is.head !== null && (await files.lstat(at)) === null) {
    await index.seed(new Map([[name, is.head]]));
    await index.writeOut([name]);
  }
  if (before !== null) await files.unlink(aside);
  return is.head === null ? "removed" : "restored";
}

/** The very file that was compared, and not written to since. */
function isUntouched(before: FileStat, now: FileStat | null): boolean {
  return (
    now !== null && now.inode === before.inode && now.size === before.size && now.mtimeMs === before.mtimeMs
  );
}

/** As Git would add it: with the filters and modes that hold for the path. */
async function isAs(index: AgentIndex, name: ByteText, wanted: Leaf): Promise<boolean> {
  await index.seed(new Map([[name, wanted]]));
  await index.takeFiles([name]);
  return sameLeaf((await index.list()).get(name), wanted);
}

async function stagedPaths(workspace: Workspace, paths: readonly string[]): Promise<Set<string>> {
  const { git } = workspace.surroundings;
  const cwd = workspace.repository.worktreeRoot;
  const { stdout } = await git.run(
    ["diff-index", "--cached", "--name-only", "-z", "HEAD", "--", ...paths.slice(0, 1_000)],
    {
      cwd,
      env: { GIT_LITERAL_PATHSPECS: "1" },
    },
  );
  return new Set(new TextDecoder().decode(stdout).split("\0"));
}

function suffixOf({ platform }: IndexPlace): string {
  return Array.from(platform.random.bytes(6), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
