import type { Workspace } from "../../coordinator/workspace";
import { type ByteText, toByteText } from "../../git/byte-text";
import type { ObjectDatabase } from "../../git/database";
import type { ObjectId } from "../../git/object-name";
import { type Leaf, lookUp } from "../../git/tree-editor";
import { freshSuffix } from "../../platform/hex";
import type { FileStat, Files } from "../../platform/platform";
import { commitOf } from "../hooks/divergence";
import { AgentIndex, type IndexPlace } from "./agent-index";
import { sameLeaf } from "./draft";

export interface TidiedFile {
  readonly path: string;
  /** `restored` to what HEAD has, `removed` because HEAD has none, or left as it is, and why. */
  readonly outcome: "restored" | "removed" | "differs" | "staged";
}

/**
 * `--settle`: of the published paths, those whose files in the working tree are just as they were published go
 * back to what HEAD has: nothing is lost by it, for it is on the branch. The shared index is not touched; whatever
 * somebody has staged is left alone.
 */
export async function settleWorkingFiles(
  workspace: Workspace,
  objects: ObjectDatabase,
  place: IndexPlace,
  published: ReadonlyMap<string, Leaf | null>,
): Promise<TidiedFile[]> {
  const paths = [...published.keys()];
  const { git } = workspace.surroundings;
  const head = await commitOf(git, workspace.repository.worktreeRoot, "HEAD");
  const headTree = head === null ? null : (await objects.readCommit(head)).tree;
  const inHead = await lookUp(objects, headTree, paths);
  const nothing = objects.nameOf("tree", new Uint8Array());
  const staged = await stagedPaths(workspace, headTree ?? nothing, paths);
  const files = new Map<string, WorkingFile>();
  for (const path of paths) {
    const is = { published: published.get(path) ?? null, head: inHead.get(path) ?? null };
    if (sameLeaf(is.published, is.head)) continue;
    const at = `${place.worktreeRoot}/${path}`;
    files.set(path, { ...is, name: toByteText(path), at, before: await place.platform.files.lstat(at) });
  }
  const index = await AgentIndex.open(place);
  try {
    const settled = await settleAll(
      place,
      index,
      [...files].filter(([path]) => !staged.has(path)).map(([, file]) => file),
    );
    return [...files].map(([path, file]) => ({
      path,
      outcome: staged.has(path) ? "staged" : (settled.get(file) ?? "differs"),
    }));
  } finally {
    await index.close();
  }
}

interface WorkingFile {
  readonly published: Leaf | null;
  readonly head: Leaf | null;
  readonly name: ByteText;
  /** Where it stands, and what stood there before anybody compared it. */
  readonly at: string;
  readonly before: FileStat | null;
}

/** Those that were settled, and how; all others differ from what was published. A few Gits, however many files. */
async function settleAll(
  place: IndexPlace,
  index: AgentIndex,
  files: readonly WorkingFile[],
): Promise<Map<WorkingFile, "restored" | "removed">> {
  const { files: disk } = place.platform;
  const settled = new Map<WorkingFile, "restored" | "removed">();
  const asides: [WorkingFile, string][] = [];
  const wanting: WorkingFile[] = [];
  for (const file of await asPublished(index, files)) {
    const aside = `${file.at}.cotenant-${freshSuffix(place.platform.random)}`;
    if (file.before !== null) {
      // Out of the way first: what an editor saves in the meantime then stands under the name, and stays.
      if (!(await moved(disk, file.at, aside))) continue;
      if (!isUntouched(file.before, await disk.lstat(aside))) {
        if ((await disk.lstat(file.at)) === null) await disk.rename(aside, file.at);
        continue;
      }
      asides.push([file, aside]);
    }
    if (file.head !== null) wanting.push(file);
    settled.set(file, file.head === null ? "removed" : "restored");
  }
  await index.seed(new Map(wanting.map(({ name, head }) => [name, head!])));
  await index.writeOut(wanting.map(({ name }) => name));
  for (const file of wanting) if ((await disk.lstat(file.at)) === null) settled.delete(file);
  for (const [file, aside] of asides) {
    if (settled.has(file)) await disk.unlink(aside);
    else await disk.rename(aside, file.at);
  }
  return settled;
}

/** Those that are just as they were published, as Git would add them: with the filters and modes that hold for them. */
async function asPublished(index: AgentIndex, files: readonly WorkingFile[]): Promise<WorkingFile[]> {
  const there = new Set(
    files.filter(
      ({ published, before }) =>
        published !== null && (before?.kind === "file" || before?.kind === "symlink"),
    ),
  );
  await index.seed(new Map([...there].map(({ name, published }) => [name, published!])));
  await index.takeFiles([...there].map(({ name }) => name));
  const now = await index.list();
  return files.filter((file) =>
    file.published === null
      ? file.before === null
      : there.has(file) && sameLeaf(now.get(file.name), file.published),
  );
}

/** The very file that was compared, and not written to since. */
function isUntouched(before: FileStat, now: FileStat | null): boolean {
  return (
    now !== null && now.inode === before.inode && now.size === before.size && now.mtimeMs === before.mtimeMs
  );
}

/** Those that the shared index has otherwise than HEAD; where Git does not say, all of them. */
async function stagedPaths(
  { surroundings, repository }: Workspace,
  headTree: ObjectId,
  paths: readonly string[],
): Promise<Set<string>> {
  const { status, stdout } = await surroundings.git.run(
    ["diff-index", "--cached", "--name-only", "--no-renames", "--ignore-submodules=none", "-z", headTree],
    { cwd: repository.worktreeRoot },
  );
  return new Set(status === 0 ? new TextDecoder().decode(stdout).split("\0") : paths);
}

/** False where it is gone meanwhile. */
async function moved(files: Files, from: string, to: string): Promise<boolean> {
  try {
    await files.rename(from, to);
    return true;
  } catch {
    return false;
  }
}
