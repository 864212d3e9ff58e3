import { CotenantError, limitError } from "../../errors/cotenant-error";
import { type ByteText, bytesOf, fromByteText, toByteText } from "../../git/byte-text";
import type { ObjectDatabase } from "../../git/database";
import type { ObjectId } from "../../git/object-name";
import { ObjectReader } from "../../git/object-reader";
import { isTree, MODES } from "../../git/tree";
import { type Leaf, listFiles, lookUp } from "../../git/tree-editor";
import { printable } from "../../kernel/ids";
import { AgentIndex, type IndexPlace } from "./agent-index";
import {
  checkedPath,
  contentLeaf,
  type Draft,
  DraftBook,
  type Input,
  pathError,
  sameLeaf,
  type Wanted,
} from "./draft";
import { formerNames } from "./patch-names";

export interface DraftBasis {
  readonly objects: ObjectDatabase;
  /** The tree that the inputs are meant against; null where there is nothing yet. */
  readonly base: ObjectId | null;
  /** The one that files of the working tree were made from. */
  readonly ground: ObjectId | null;
  /** Files of it that were put back: no change where they are found so in a directory, and not named themselves. */
  readonly putBack: ReadonlyMap<string, Leaf | null>;
  readonly index: IndexPlace;
  readonly maxPaths: number;
}

type OpOf<Op extends Input["op"]> = Extract<Input, { op: Op }>;

export interface Drafted {
  readonly draft: Draft;
  /** What each of its paths was made from. */
  readonly before: ReadonlyMap<string, Leaf>;
  /** Files of the working tree that are not as they were made from, with what they are. */
  readonly taken: Draft;
  /** Those that were taken once, and put back since. */
  readonly putBack: readonly string[];
}

/** What the inputs come to, path by path, against the base. Nothing of it is in the repository yet. */
export async function draftOf(basis: DraftBasis, inputs: readonly Input[]): Promise<Drafted> {
  const book = new DraftBook();
  const of = <Op extends Input["op"]>(op: Op) => inputs.filter((input): input is OpOf<Op> => input.op === op);
  const patches = of("patch");
  if (patches.length > 0) book.setAll(await patched(basis, patches));
  const named = of("from-worktree");
  const { changes: taken, putBack } =
    named.length === 0
      ? { changes: new Map<string, Wanted | null>(), putBack: [] }
      : await fromWorktree({ ...basis, base: basis.ground }, named, basis.base);
  book.setAll(taken);
  for (const input of of("delete")) await deleted(basis, book, input);
  for (const input of of("rename")) await renamed(basis, book, input);
  for (const input of of("put")) await put(basis, book, input);
  const inBase = await lookUp(basis.objects, basis.base, book.draft.keys());
  // What stands there already is no change.
  const draft = new Map([...book.draft].filter(([path, wanted]) => !sameLeaf(wanted, inBase.get(path))));
  const grounds = await lookUp(basis.objects, basis.ground, taken.keys());
  const before = new Map<string, Leaf>();
  for (const path of draft.keys()) {
    const leaf = (taken.has(path) ? grounds : inBase).get(path);
    if (leaf !== undefined) before.set(path, leaf);
  }
  return { draft, before, taken, putBack };
}

// --- contents, deletions, renames ---------------------------------------------------------------------------

async function at(basis: DraftBasis, path: string): Promise<Leaf | null> {
  return (await lookUp(basis.objects, basis.base, [checkedPath(path)])).get(path) ?? null;
}

async function put(basis: DraftBasis, book: DraftBook, input: OpOf<"put">): Promise<void> {
  const { path, content, mode, newMode } = input;
  const old = await at(basis, path);
  refuseUnexpected(path, old, input.baseBlob);
  if (old !== null && isTree(old)) {
    // It may become a file where everything in it goes in the same publish.
    const inside = [...(await filesAt(basis, path, old)).keys()];
    if (inside.some((file) => book.draft.get(file) !== null)) throw isDirectory(path);
  }
  const isFile = old?.mode === MODES.file || old?.mode === MODES.executable;
  if (mode === null && old !== null && !isFile && !isTree(old))
    throw pathError("E_POLICY", path, "is a symbolic link or a submodule now", {
      hint: "say what it should become: a change with a mode, on --changes",
      mode: old.mode,
    });
  book.set(path, contentLeaf(basis.objects, mode ?? (isFile ? old.mode : newMode), content));
}

async function deleted(
  basis: DraftBasis,
  book: DraftBook,
  { path, baseBlob }: OpOf<"delete">,
): Promise<void> {
  const old = await at(basis, path);
  refuseUnexpected(path, old, baseBlob);
  if (old === null) throw notInBase(path);
  for (const [file] of await filesAt(basis, path, old)) book.set(file, null);
}

async function renamed(basis: DraftBasis, book: DraftBook, { from, to }: OpOf<"rename">): Promise<void> {
  const old = await at(basis, from);
  if (old === null) throw notInBase(from);
  const there = await at(basis, to);
  const isFreed = book.has(to) && book.draft.get(to) === null;
  if (there !== null && !isFreed)
    throw pathError("E_USAGE", to, "is there already", {
      hint: "delete it in the same publish (--delete), or choose another name",
    });
  for (const [file, leaf] of await filesAt(basis, from, old)) {
    const target = checkedPath(to + file.slice(from.length));
    if (book.has(target) && book.draft.get(target) === null) book.replace(target, { ...leaf, content: null });
    else book.set(target, { ...leaf, content: null });
    book.set(file, null);
  }
}

/** The files that a path stands for: itself, or everything in it. */
async function filesAt(basis: DraftBasis, path: string, leaf: Leaf): Promise<Map<string, Leaf>> {
  if (!isTree(leaf)) return new Map([[path, leaf]]);
  const files = await listFiles(basis.objects, leaf.oid, basis.maxPaths);
  return new Map([...files].map(([name, file]) => [`${path}/${unicode(name)}`, file]));
}

function refuseUnexpected(path: string, old: Leaf | null, expected: ObjectId | null | undefined): void {
  if (expected === undefined || expected === (old?.oid ?? null)) return;
  throw new CotenantError(
    "E_PUBLISH_CONFLICT",
    `${printable(path, 200)} is not what it was when the change was made`,
    { data: { paths: [printable(path, 500)], expected, found: old?.oid ?? null } },
  );
}

// --- patches, and files of a working tree -------------------------------------------------------------------

async function patched(
  basis: DraftBasis,
  patches: readonly OpOf<"patch">[],
): Promise<Map<string, Wanted | null>> {
  return withIndex(basis, async (index) => {
    const names = new Set<ByteText>();
    for (const { patch, name } of patches) {
      for (const path of await index.namesIn(patch, name)) names.add(checkedPath(unicode(path)) && path);
      for (const path of formerNames(patch)) names.add(path);
    }
    if (names.size > 2 * basis.maxPaths) throw tooMany(names.size);
    const before = await lookUpBytes(basis, names);
    await index.seed(before);
    for (const { patch, name } of patches) await index.apply(patch, name);
    return before;
  });
}

async function fromWorktree(
  basis: DraftBasis,
  inputs: readonly OpOf<"from-worktree">[],
  branch: ObjectId | null,
): Promise<{ changes: Map<string, Wanted | null>; putBack: readonly string[] }> {
  const { files } = basis.index.platform;
  const changes = await withIndex(basis, async (index) => {
    const before = new Map<ByteText, Leaf>();
    const [plain, directories]: [ByteText[], ByteText[]] = [[], []];
    for (const { path } of inputs) {
      const isRoot = path === ".";
      const old = isRoot ? rootOf(basis) : await at(basis, path);
      const now = await files.lstat(
        isRoot ? basis.index.worktreeRoot : `${basis.index.worktreeRoot}/${path}`,
      );
      if (old === null && now === null) throw nowhere(path, await at({ ...basis, base: branch }, path));
      if (old !== null)
        for (const [file, leaf] of await filesOf(basis, isRoot ? "" : toByteText(path), old))
          before.set(file, leaf);
      const isDirectory = now === null ? old !== null && isTree(old) : now.kind === "directory";
      (isDirectory ? directories : plain).push(isRoot ? "." : toByteText(path));
    }
    if (before.size > 10 * basis.maxPaths) throw tooMany(before.size);
    await index.seed(before);
    await index.takeFiles(plain);
    await index.takeDirectories(directories);
    return before;
  });
  const named = new Set(inputs.map(({ path }) => path));
  const putBack = [...basis.putBack].flatMap(([path, leaf]) =>
    !named.has(path) && changes.has(path) && sameLeaf(changes.get(path), leaf) ? [path] : [],
  );
  for (const path of putBack) changes.delete(path);
  return { changes, putBack };
}

function rootOf({ base }: DraftBasis): Leaf | null {
  return base === null ? null : { mode: MODES.tree, oid: base };
}

async function filesOf(basis: DraftBasis, path: ByteText, leaf: Leaf): Promise<Map<ByteText, Leaf>> {
  if (!isTree(leaf)) return new Map([[path, leaf]]);
  const files = await listFiles(basis.objects, leaf.oid, 10 * basis.maxPaths);
  return path === "" ? files : new Map([...files].map(([name, file]) => [`${path}/${name}`, file]));
}

/** Lets `work` do something to an index of its own; answers how it differs from what it began with. */
async function withIndex(
  basis: DraftBasis,
  work: (index: AgentIndex) => Promise<ReadonlyMap<ByteText, Leaf>>,
): Promise<Map<string, Wanted | null>> {
  const index = await AgentIndex.open(basis.index);
  const reader = new ObjectReader(basis.index.git, basis.index.worktreeRoot, index.env);
  try {
    const before = await work(index);
    const after = await index.list();
    const changes = new Map<string, Wanted | null>();
    for (const [path, leaf] of after) {
      if (sameLeaf(before.get(path), leaf)) continue;
      if (changes.size > basis.maxPaths) throw tooMany(changes.size);
      changes.set(checkedPath(unicode(path)), await contentOf(reader, leaf));
    }
    for (const path of before.keys()) if (!after.has(path)) changes.set(unicode(path), null);
    return changes;
  } finally {
    await reader.close();
    await index.close();
  }
}

async function contentOf(reader: ObjectReader, leaf: Leaf): Promise<Wanted> {
  if (leaf.mode === MODES.submodule) return { ...leaf, content: null };
  const object = await reader.read(leaf.oid);
  if (object?.type !== "blob") throw new CotenantError("E_GIT", `Git made no file of object ${leaf.oid}`);
  return { ...leaf, content: object.content };
}

async function lookUpBytes(basis: DraftBasis, names: ReadonlySet<ByteText>): Promise<Map<ByteText, Leaf>> {
  const readable = [...names].filter((name) => isUnicode(name)).map(fromByteText);
  const found = await lookUp(
    basis.objects,
    basis.base,
    readable.filter((path) => !/(?:^|\/)(?:\/|$)/.test(path)),
  );
  const files = [...found].filter(([, leaf]) => !isTree(leaf));
  return new Map(files.map(([path, leaf]) => [toByteText(path), leaf]));
}

// --- names ---------------------------------------------------------------------------------------------------

function isUnicode(name: ByteText): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytesOf(name));
    return true;
  } catch {
    return false;
  }
}

/** Leases have no name for what is no text. */
function unicode(name: ByteText): string {
  if (isUnicode(name)) return fromByteText(name);
  const shown = printable(fromByteText(name), 200);
  throw new CotenantError("E_PATH_ESCAPE", `"${shown}" is not valid Unicode`, { data: { path: shown } });
}

function notInBase(path: string): CotenantError {
  const hint = "--base says against what the changes are meant; 'git ls-tree -r <base>' shows what is in it";
  return pathError("E_NOT_FOUND", path, "is not in the base", { hint });
}

function nowhere(path: string, onBranch: Leaf | null): CotenantError {
  return onBranch === null
    ? pathError("E_NOT_FOUND", path, "is neither in the working tree nor in the base", {
        hint: "look at how it is spelled; paths are seen from where you stand",
      })
    : pathError("E_NOT_FOUND", path, "is on the branch, and this working tree never had it", {
        hint: "leave it out; to delete it from the branch, name it with --delete instead",
      });
}

function isDirectory(path: string): CotenantError {
  const hint = "name a file in it, or delete the directory in the same publish";
  return pathError("E_USAGE", path, "is a directory in the base", { hint });
}

function tooMany(count: number): CotenantError {
  return limitError(
    `${count} paths or more are involved, which is too many for one publish`,
    "publish in parts, or allow more: publish.max_paths",
  );
}
