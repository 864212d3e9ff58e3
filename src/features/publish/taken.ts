import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, orThrow } from "../../errors/cotenant-error";
import { type ByteText, fromByteText } from "../../git/byte-text";
import type { ObjectDatabase } from "../../git/database";
import { isObjectId, type ObjectId } from "../../git/object-name";
import { readRef } from "../../git/refs";
import { editTree, type Leaf, listFiles, lookUp, TreeClash } from "../../git/tree-editor";
import { type Fact, type FactName, parseFactName } from "../../kernel/facts";
import type { WorktreeId } from "../../kernel/ids";
import { isFullRefName } from "../../kernel/keys";
import { commitOf } from "../hooks/divergence";
import { type Point, pointAt } from "./base";
import { isAncestor, placeOn } from "./catching-up";
import { type Draft, sameLeaf } from "./draft";

const TAKEN = "taken";

/** More are no work of one worktree. */
const MOST_ENTRIES = 100_000;
const MOST_COMMITS = 1_000;
/** As many as one line takes besides all else. */
const MOST_STALE = 20;

/**
 * What the files of a working tree were made from, as seen from a branch: of those that were published there before, what
 * was taken then; of all others, what HEAD and the branch have in common. Whatever else the branch has by now is the work
 * of others, and a file that lacks it takes nothing back.
 */
export interface Ground {
  readonly tree: ObjectId | null;
  readonly at: TakenAt;
  /** What was taken before, as seen from `at`. */
  readonly before: ReadonlyMap<string, Standing>;
  /** What HEAD has of files that were taken with something else in them: who finds them so, finds them put back. */
  readonly putBack: ReadonlyMap<string, Leaf | null>;
}

interface Entry {
  /** What HEAD had then. */
  readonly head: Leaf | null;
  readonly taken: Leaf | null;
}

interface Standing extends Entry {
  /** HEAD has the same still. */
  readonly isAsBefore: boolean;
}

interface Note {
  /** The publish after which it was so. */
  readonly commit: ObjectId;
  readonly head: ObjectId | null;
  /** Below `head` and `taken`, the paths with what HEAD had and with what was taken. */
  readonly tree: ObjectId;
}

export function takenName(
  { surroundings }: Pick<Workspace, "surroundings">,
  worktreeId: WorktreeId,
  ref: string,
): FactName {
  const hash = surroundings.platform.digest.sha256(ref).slice(0, 32);
  return orThrow(parseFactName(`${TAKEN}:${worktreeId}/${hash}`));
}

export async function groundOf(
  workspace: Workspace,
  objects: ObjectDatabase,
  worktreeId: WorktreeId,
  ref: string,
  base: Point,
): Promise<Ground> {
  const { git } = workspace.surroundings;
  const cwd = workspace.repository.worktreeRoot;
  const head = await pointAt(objects, await commitOf(git, cwd, "HEAD"));
  const common = await commonOf(workspace, head.commit, base.commit);
  const { tree } = await pointAt(objects, common);
  const at = { worktreeId, ref, head, tip: base.commit };
  const before = await takenBefore(workspace, objects, at);
  const taken = new Map([...before].map(([path, entry]) => [path, entry.taken]));
  const putBack = new Map<string, Leaf | null>();
  for (const [path, entry] of before)
    if (entry.isAsBefore && !sameLeaf(entry.head, entry.taken)) putBack.set(path, entry.head);
  try {
    return { tree: taken.size === 0 ? tree : await editTree(objects, tree, taken), at, before, putBack };
  } catch (error) {
    if (!(error instanceof TreeClash)) throw error;
    return { tree, at, before, putBack: new Map() };
  }
}

/** What is to be remembered once the commit is on the branch, besides what counted before. Written, and not yet flushed. */
export async function takenFact(
  workspace: Workspace,
  objects: ObjectDatabase,
  ground: Ground,
  tip: ObjectId | null,
  { commit, taken, putBack }: TakenNow,
): Promise<Fact | null> {
  const { ref, head } = ground.at;
  const isSame = tip === ground.at.tip;
  const before = isSame ? ground.before : await takenBefore(workspace, objects, { ...ground.at, tip });
  const all = new Map([...before].map(([path, entry]) => [path, entry.taken]));
  for (const path of putBack) all.delete(path);
  for (const [path, wanted] of taken) {
    all.set(path, wanted);
    // The branch may have a merged one.
    if (wanted !== null && wanted.content !== null) await objects.writeBlob(wanted.content);
  }
  const inHead = await lookUp(objects, head.tree, all.keys());
  const leaves = [...all].flatMap(([path, leaf]): [string, Leaf | null][] => [
    [`head/${path}`, inHead.get(path) ?? null],
    [`taken/${path}`, leaf === null ? null : { mode: leaf.mode, oid: leaf.oid }],
  ]);
  try {
    return { ref, commit, head: head.commit, tree: await editTree(objects, null, new Map(leaves)) };
  } catch (error) {
    if (error instanceof TreeClash) return null;
    throw error;
  }
}

/** A working tree, and a branch. */
interface TakenAt {
  readonly worktreeId: WorktreeId;
  readonly ref: string;
  readonly head: Point;
  readonly tip: ObjectId | null;
}

export interface TakenNow {
  readonly commit: ObjectId;
  readonly taken: Draft;
  /** Files that are, or will be, what HEAD has. */
  readonly putBack: readonly string[];
}

/** Of branches that are gone. */
export async function staleNotes(workspace: Workspace): Promise<Map<FactName, null>> {
  const stale = new Map<FactName, null>();
  const { surroundings, repository } = workspace;
  for (const [name, { value }] of await workspace.coordinator.facts({ kinds: [TAKEN] })) {
    if (stale.size === MOST_STALE) break;
    const ref = String(value["ref"]);
    if (
      !isFullRefName(ref) ||
      (await readRef(surroundings.platform, surroundings.git, repository, ref)) === null
    )
      stale.set(name, null);
  }
  return stale;
}

/** What was taken from there for the branch, and still counts. */
async function takenBefore(
  workspace: Workspace,
  objects: ObjectDatabase,
  { worktreeId, ref, head, tip }: TakenAt,
): Promise<Map<string, Standing>> {
  const note = tip === null ? null : await noteFor(workspace, worktreeId, ref);
  if (note === null || tip === null || (await placeOn(workspace, note.commit, tip)) === null)
    return new Map();
  return stillTaken(workspace, objects, note, head);
}

async function noteFor(workspace: Workspace, worktreeId: WorktreeId, ref: string): Promise<Note | null> {
  const name = takenName(workspace, worktreeId, ref);
  const fact = (await workspace.coordinator.facts({ names: [name] })).get(name)?.value;
  if (fact === undefined) return null;
  const { commit, head, tree } = fact;
  const isId = (value: unknown): value is ObjectId =>
    typeof value === "string" && isObjectId(workspace.repository.config.objectFormat, value);
  return isId(commit) && isId(tree) && (head === null || isId(head)) ? { commit, head, tree } : null;
}

async function commonOf(
  { surroundings, repository }: Workspace,
  head: ObjectId | null,
  base: ObjectId | null,
): Promise<ObjectId | null> {
  if (head === null || base === null || head === base) return head === base ? head : null;
  const args = ["merge-base", head, base];
  const { status, stdout } = await surroundings.git.run(args, { cwd: repository.worktreeRoot });
  return status === 0 ? new TextDecoder().decode(stdout).trim() : null;
}

/**
 * Those of what was taken that the files there now were made from. A HEAD that has moved may have brought other files: then
 * it has what was taken in its history, or the same as before, or it does not count.
 */
async function stillTaken(
  workspace: Workspace,
  objects: ObjectDatabase,
  note: Note,
  head: Point,
): Promise<Map<string, Standing>> {
  const entries = await entriesIn(objects, note.tree);
  const now = await lookUp(objects, head.tree, entries.keys());
  const found = new Map<string, Standing>();
  for (const [path, entry] of entries)
    found.set(path, { ...entry, isAsBefore: sameLeaf(now.get(path), entry.head) });
  const moved = [...found].filter(
    ([path, entry]) => !entry.isAsBefore && !sameLeaf(now.get(path), entry.taken),
  );
  if (moved.length === 0) return found;
  const isFurther =
    note.head !== null && head.commit !== null && (await isAncestor(workspace, note.head, head.commit));
  const committed = await committedBetween(workspace, note.head, head.commit);
  for (const [path, entry] of moved) {
    const wasClean = isFurther && sameLeaf(entry.head, entry.taken);
    if (!wasClean && !(entry.taken !== null && committed.has(entry.taken.oid))) found.delete(path);
  }
  return found;
}

/** What was taken, path by path. Nothing where Git has cleared it away: then HEAD says what there is to know. */
async function entriesIn(objects: ObjectDatabase, note: ObjectId): Promise<Map<string, Entry>> {
  const entries = new Map<string, Entry>();
  try {
    const sides = new Map((await objects.readTree(note)).map(({ name, oid }) => [name, oid]));
    const files = async (side: ByteText) => {
      const tree = sides.get(side);
      return tree === undefined ? new Map<ByteText, Leaf>() : listFiles(objects, tree, MOST_ENTRIES);
    };
    const [head, taken] = [await files("head"), await files("taken")];
    for (const path of new Set([...head.keys(), ...taken.keys()]))
      entries.set(fromByteText(path), { head: head.get(path) ?? null, taken: taken.get(path) ?? null });
    return entries;
  } catch (error) {
    if (error instanceof CotenantError && error.code === "E_GIT") return new Map();
    throw error;
  }
}

async function committedBetween(
  { surroundings, repository }: Workspace,
  since: ObjectId | null,
  head: ObjectId | null,
): Promise<Set<ObjectId>> {
  if (head === null) return new Set();
  const range = since === null ? [head] : [head, `^${since}`];
  const form = ["--format=", "--raw", "--no-abbrev", "--no-renames", `-${MOST_COMMITS}`];
  const { stdout } = await surroundings.git.run(["log", ...form, ...range], { cwd: repository.worktreeRoot });
  const lines = new TextDecoder().decode(stdout).matchAll(/^:\d+ \d+ [0-9a-f]+ ([0-9a-f]+) /gm);
  return new Set([...lines].map(([, oid]) => oid!));
}
