import type { ByteText } from "../../git/byte-text";
import type { ObjectId, ObjectType } from "../../git/object-name";
import { encodeTree, MODES, type TreeEntry } from "../../git/tree";

export type Put = (type: ObjectType, content: Uint8Array) => Promise<ObjectId>;

export interface Leaf {
  readonly path: ByteText;
  /** As a tree has it. */
  readonly mode: string;
  readonly oid: ObjectId;
}

export interface Built {
  readonly root: ObjectId;
  /** The tree of each directory that has one. */
  readonly trees: ReadonlyMap<ByteText, ObjectId>;
}

/** Trees for leaves in any order. Directories whose tree is known already are not made again, nor looked into. */
export async function buildTrees(
  put: Put,
  leaves: Iterable<Leaf>,
  known: ReadonlyMap<ByteText, ObjectId> = new Map(),
): Promise<Built> {
  const inside = new Map<ByteText, TreeEntry[]>([["", []]]);
  const trees = new Map(known);
  const open = (directory: ByteText): TreeEntry[] => {
    let entries = inside.get(directory);
    if (entries !== undefined) return entries;
    entries = [];
    inside.set(directory, entries);
    if (directory !== "") open(parent(directory));
    return entries;
  };
  for (const { path, mode, oid } of leaves) {
    const directory = parent(path);
    if (known.has(directory)) continue;
    open(directory).push({ mode, name: path.slice(directory === "" ? 0 : directory.length + 1), oid });
  }
  // A known directory may be the only thing in one that is not.
  for (const directory of known.keys()) if (!known.has(parent(directory))) open(parent(directory));
  for (const [directory, oid] of known) {
    const above = inside.get(parent(directory));
    above?.push({ mode: MODES.tree, name: nameIn(directory), oid });
  }
  const deepestFirst = [...inside.keys()].sort((a, b) => depth(b) - depth(a));
  for (const directory of deepestFirst) {
    const oid = await put("tree", encodeTree(inside.get(directory)!));
    if (directory === "") return { root: oid, trees };
    trees.set(directory, oid);
    inside.get(parent(directory))!.push({ mode: MODES.tree, name: nameIn(directory), oid });
  }
  throw new Error("a tree without a root");
}

function depth(directory: ByteText): number {
  if (directory === "") return -1;
  let slashes = 0;
  for (let at = directory.indexOf("/"); at !== -1; at = directory.indexOf("/", at + 1)) slashes++;
  return slashes;
}

export function parent(path: ByteText): ByteText {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

function nameIn(path: ByteText): ByteText {
  return path.slice(path.lastIndexOf("/") + 1);
}
