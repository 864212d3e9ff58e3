import { CotenantError } from "../../errors/cotenant-error";
import type { ObjectDatabase, ObjectPlace } from "../../git/database";
import type { ObjectId } from "../../git/object-name";
import { MODES } from "../../git/tree";
import { editTree, type Leaf, lookUp, TreeClash } from "../../git/tree-editor";
import { printable } from "../../kernel/ids";
import type { LastingGit } from "../../platform/git";
import { gitFailed } from "../../platform/git-answers";
import type { Platform } from "../../platform/platform";
import { quarantine, withObjectsApart } from "./agent-index";
import { type Draft, sameLeaf, type Wanted } from "./draft";
import { MOST_NAMED, others } from "./hint-words";

export interface MergePlace {
  readonly platform: Platform;
  readonly git: LastingGit;
  readonly place: ObjectPlace;
  readonly objects: ObjectDatabase;
  /** For what Git makes on the way. */
  readonly directory: string;
  readonly directoryMode: number;
}

export interface Merge {
  readonly draft: Draft;
  /** What the changes are meant against, path by path; where it is missing, as the base has it. */
  readonly before?: ReadonlyMap<string, Leaf>;
  readonly base: { readonly commit: ObjectId | null; readonly tree: ObjectId | null };
  readonly tipTree: ObjectId | null;
  /** Paths that must be on the tip as they are in the base. */
  readonly optimistic: ReadonlySet<string>;
}

/**
 * The same changes, meant against the branch as it is now. Where it has moved elsewhere, there is nothing to merge; where
 * it has moved in the same files, Git merges them, without a checkout. A real conflict is refused with its paths.
 */
export async function ontoTip(at: MergePlace, merge: Merge): Promise<Draft> {
  const { draft, base, tipTree, optimistic } = merge;
  if (tipTree === base.tree && merge.before === undefined) return draft;
  const before = merge.before ?? (await lookUp(at.objects, base.tree, draft.keys()));
  const now = await lookUp(at.objects, tipTree, draft.keys());
  const moved = [...draft.keys()].filter((path) => !sameLeaf(before.get(path), now.get(path)));
  const open = moved.filter((path) => !sameLeaf(draft.get(path), now.get(path)));
  const unwatched = open.filter((path) => optimistic.has(path));
  if (unwatched.length > 0) throw conflict(unwatched);
  const merged =
    open.length === 0 ? new Map<string, Wanted | null>() : await mergedByGit(at, { ...merge, before }, open);
  const onto = new Map<string, Wanted | null>();
  for (const [path, wanted] of draft) {
    const result = merged.has(path) ? merged.get(path)! : wanted;
    if (!sameLeaf(result, now.get(path))) onto.set(path, result);
  }
  return onto;
}

/** The tree with the changes in it; contents that are new are written. */
export async function treeWith(
  objects: ObjectDatabase,
  tree: ObjectId | null,
  draft: Draft,
): Promise<ObjectId> {
  const leaves = new Map<string, Leaf | null>();
  for (const [path, wanted] of draft) {
    if (wanted !== null && wanted.content !== null) await objects.writeBlob(wanted.content);
    leaves.set(path, wanted === null ? null : { mode: wanted.mode, oid: wanted.oid });
  }
  return editedTree(objects, tree, leaves);
}

async function editedTree(
  objects: ObjectDatabase,
  tree: ObjectId | null,
  leaves: ReadonlyMap<string, Leaf | null>,
): Promise<ObjectId> {
  try {
    return await editTree(objects, tree, leaves);
  } catch (error) {
    if (error instanceof TreeClash) throw conflict([error.path], error.message);
    throw error;
  }
}

function conflict(paths: readonly string[], why?: string): CotenantError {
  const names = paths.map((path) => printable(path, 500));
  const more = others(paths.slice(1));
  return new CotenantError(
    "E_PUBLISH_CONFLICT",
    why === undefined ? `${names[0]} was changed on the branch as well${more}` : printable(why, 400),
    { data: { paths: names.slice(0, MOST_NAMED), count: names.length } },
  );
}

/**
 * Git's own three-way merge of the paths in question. It wants commits: the base, the branch, and the base with the
 * changes. They are made apart from the repository, with the base as the parent of both, because that is what the changes
 * were made against, whatever the branch's history says.
 */
async function mergedByGit(
  at: MergePlace,
  { draft, base, before, tipTree }: Merge & { readonly before: ReadonlyMap<string, Leaf> },
  open: readonly string[],
): Promise<Map<string, Wanted | null>> {
  if (base.tree === null || tipTree === null) throw conflict(open);
  const inQuarantine = async (apart: ObjectDatabase, env: Readonly<Record<string, string>>) => {
    const only = new Map([...draft].filter(([path]) => open.includes(path)));
    const leaves = new Map(open.map((path) => [path, before.get(path) ?? null]));
    const ground = await editedTree(apart, base.tree, leaves);
    const ours = await treeWith(apart, ground, only);
    const result = await mergeTree(at.git, at.place, env, {
      base: await bareCommit(apart, ground, []),
      commit: (tree, parent) => bareCommit(apart, tree, [parent]),
      flush: () => apart.flush(),
      ours,
      theirs: tipTree,
      open,
    });
    const found = await lookUp(apart, result, open);
    const merged = new Map<string, Wanted | null>();
    for (const path of open) {
      const leaf = found.get(path) ?? null;
      if (leaf !== null && leaf.mode === MODES.tree) throw conflict([path]);
      merged.set(path, leaf === null ? null : { ...leaf, content: await apart.readBlob(leaf.oid) });
    }
    return merged;
  };
  return withObjectsApart(at, at.place, "merge", inQuarantine, (root) => ({
    ...quarantine(at.place.commonDir, root),
    GIT_NO_REPLACE_OBJECTS: "1",
  }));
}

interface Sides {
  readonly base: ObjectId;
  readonly commit: (tree: ObjectId, parent: ObjectId) => Promise<ObjectId>;
  readonly flush: () => Promise<void>;
  readonly ours: ObjectId;
  readonly theirs: ObjectId;
  readonly open: readonly string[];
}

async function mergeTree(
  git: LastingGit,
  { worktreeRoot }: ObjectPlace,
  env: Readonly<Record<string, string>>,
  { base, commit, flush, ours, theirs, open }: Sides,
): Promise<ObjectId> {
  const [one, other] = [await commit(theirs, base), await commit(ours, base)];
  await flush();
  // Without renames: what is published under a name is what was leased under it.
  const settings = ["-c", "merge.renames=false", "-c", "merge.directoryRenames=false"];
  const { status, stdout, stderr } = await git.run(
    [...settings, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", one, other],
    { cwd: worktreeRoot, env, timeoutMs: 60_000 },
  );
  const [tree = "", ...names] = new TextDecoder().decode(stdout).split("\0");
  if (status === 0) return tree.trim();
  // Where one side has a directory, Git puts the other's file beside it under a name of its own.
  const own = names.map((name) => (open.includes(name) ? name : name.replace(/~[^~/]*$/, "")));
  if (status === 1) throw conflict([...new Set(own.filter((name) => name !== ""))]);
  throw gitFailed("Git could not merge", stderr);
}

const NOBODY = { name: "cotenant", email: "cotenant@localhost", time: 0, zone: "+0000" };

function bareCommit(objects: ObjectDatabase, tree: ObjectId, parents: ObjectId[]): Promise<ObjectId> {
  return objects.writeCommit({ tree, parents, author: NOBODY, committer: NOBODY, message: "merge\n" });
}
