import { type ByteText, toByteText } from "./byte-text";
import type { ObjectId } from "./object-name";
import { isTree, MODES, type TreeEntry } from "./tree";

/** What editing needs of an object database. */
export interface Trees {
  readTree(oid: ObjectId): Promise<readonly TreeEntry[]>;
  writeTree(entries: Iterable<TreeEntry>): Promise<ObjectId>;
}

/** What stands at a path: a file, a link, a submodule, or a whole tree. */
export type Leaf = Pick<TreeEntry, "mode" | "oid">;

/** A file where a directory is, or the other way round. */
export class TreeClash extends Error {
  readonly path: string;

  constructor(path: string, why: string) {
    super(`${path} ${why}`);
    this.path = path;
  }
}

interface Branch {
  /** Undefined: not mentioned; null: to go. */
  leaf?: Leaf | null;
  readonly below: Map<ByteText, Branch>;
  /** As the caller wrote it, for words. */
  readonly path: string;
}

/**
 * The tree with these paths changed: each gets what it is given, or goes, with everything below it. Only the trees along the changed paths are read
 * and written, so the cost grows with their number and depth, not with the size of the tree. Directories that become
 * empty go, as Git has none.
 */
export async function editTree(
  trees: Trees,
  base: ObjectId | null,
  changes: ReadonlyMap<string, Leaf | null>,
): Promise<ObjectId> {
  const root: Branch = { below: new Map(), path: "" };
  for (const [path, leaf] of changes) plant(root, path, leaf);
  return (await edited(trees, base, root)) ?? trees.writeTree([]);
}

/** What stands at each path; paths at which nothing stands are missing. */
export async function lookUp(
  trees: Pick<Trees, "readTree">,
  base: ObjectId | null,
  paths: Iterable<string>,
): Promise<Map<string, Leaf>> {
  const root: Branch = { below: new Map(), path: "" };
  for (const path of paths) plant(root, path, null);
  const found = new Map<string, Leaf>();
  const visit = async (tree: ObjectId, branch: Branch): Promise<void> => {
    const entries = byName(await trees.readTree(tree));
    for (const [name, next] of branch.below) {
      const entry = entries.get(name);
      if (entry === undefined) continue;
      if (next.leaf !== undefined) found.set(next.path, { mode: entry.mode, oid: entry.oid });
      if (next.below.size > 0 && isTree(entry)) await visit(entry.oid, next);
    }
  };
  if (base !== null) await visit(base, root);
  return found;
}

/** Every file below a tree, by its path from there; at most so many. */
export async function listFiles(
  trees: Pick<Trees, "readTree">,
  tree: ObjectId,
  most: number,
  above: ByteText = "",
  found = new Map<ByteText, Leaf>(),
): Promise<Map<ByteText, Leaf>> {
  for (const { name, mode, oid } of await trees.readTree(tree)) {
    if (found.size > most) break;
    if (isTree({ mode })) await listFiles(trees, oid, most, `${above}${name}/`, found);
    else found.set(above + name, { mode, oid });
  }
  return found;
}

function plant(root: Branch, path: string, leaf: Leaf | null): void {
  let at = root;
  let end = -1;
  do {
    const start = end + 1;
    end = path.indexOf("/", start);
    const name = toByteText(end === -1 ? path.slice(start) : path.slice(start, end));
    const known = at.below.get(name);
    const next = known ?? { below: new Map(), path: end === -1 ? path : path.slice(0, end) };
    if (known === undefined) at.below.set(name, next);
    at = next;
  } while (end !== -1);
  at.leaf = leaf;
}

/** Null for a tree in which nothing is left. */
async function edited(trees: Trees, base: ObjectId | null, branch: Branch): Promise<ObjectId | null> {
  const before = base === null ? [] : await trees.readTree(base);
  const entries = new Map(byName(before));
  let isChanged = false;
  for (const [name, next] of branch.below) {
    const old = entries.get(name);
    const now = await grown(trees, old, next);
    if (now === null) entries.delete(name);
    else entries.set(name, { name, ...now });
    isChanged ||= old?.oid !== now?.oid || old?.mode !== now?.mode;
  }
  if (!isChanged && base !== null) return before.length === 0 ? null : base;
  return entries.size === 0 ? null : trees.writeTree(entries.values());
}

async function grown(trees: Trees, old: TreeEntry | undefined, next: Branch): Promise<Leaf | null> {
  const { leaf, below, path } = next;
  if (below.size === 0) {
    if (leaf != null && old !== undefined && isTree(old) && leaf.mode !== MODES.tree)
      throw new TreeClash(path, "is a directory");
    return leaf ?? null;
  }
  if (leaf != null && isTree(leaf)) throw new TreeClash(path, "is given both whole and in parts");
  const isDirectory = old !== undefined && isTree(old);
  // Something below a file: only where the file goes in the same step.
  const isReplaced = !isDirectory && old !== undefined && leaf === undefined;
  if (isReplaced && adds(next)) throw new TreeClash(path, "is a file, not a directory");
  const oid = await edited(trees, isDirectory && leaf !== null ? old.oid : null, next);
  if (oid === null) return leaf ?? (isReplaced ? old : null);
  if (leaf != null) throw new TreeClash(path, "would be a file and a directory at once");
  return { mode: MODES.tree, oid };
}

function adds({ below }: Branch): boolean {
  return [...below.values()].some((next) => next.leaf != null || adds(next));
}

/** The same trees are looked into several times per publish, and kept between them. */
const named = new WeakMap<readonly TreeEntry[], ReadonlyMap<ByteText, TreeEntry>>();

function byName(entries: readonly TreeEntry[]): ReadonlyMap<ByteText, TreeEntry> {
  const known = named.get(entries);
  if (known !== undefined) return known;
  const made = new Map(entries.map((entry) => [entry.name, entry]));
  named.set(entries, made);
  return made;
}
