import { CotenantError } from "../../errors/cotenant-error";
import { type ByteText, byteTextOf, fromByteText, isText, toByteText } from "../../git/byte-text";
import { ObjectDatabase } from "../../git/database";
import type { ObjectId } from "../../git/object-name";
import { MODES } from "../../git/tree";
import { headCommit } from "../../identity/head-commit";
import { findRepository } from "../../identity/repository";
import { isGitDirectoryName } from "../../kernel/keys";
import { ROW } from "../../platform/trees";
import { ask } from "../worktrees/git-calls";
import { Hasher, ODD } from "./hasher";
import {
  byBytes,
  isSubmodule,
  type Listed,
  listNames,
  readIndex,
  type Staged,
  type TreePlace,
} from "./listing";
import { isExecutable } from "./manifest";
import {
  directoriesOf,
  kindAt,
  modeAt,
  type Picture,
  sameButSpoilt,
  sameDirectory,
  sameRow,
  YOUNG_MS,
} from "./picture";
import { type ByCommit, headTree, objectPlace, type SnapshotMachine } from "./snapshot-context";
import { blobsOf } from "./staged";
import { buildTrees, type Leaf, type Put, parent } from "./tree-builder";
import { findUnlisted, type Unlisted } from "./unlisted";

export interface Seen {
  readonly listed: Listed;
  readonly paths: readonly ByteText[];
  readonly rows: Float64Array;
  readonly directories: readonly ByteText[];
  readonly directoryRows: Float64Array;
  /** Where in the remembered picture each path is; -1 where it is new. */
  readonly oldAt: Int32Array;
  readonly isSame: boolean;
  readonly few: boolean;
}

/** Git is told where to look as text. */
const UNREADABLE = "a repository whose name is no UTF-8";

/** Fewer than this are looked after one by one, without asking Git for all that it has. */
const FEW = 24;

/** One look at a tree, as fast as it can be done, and a second one to see whether it held still. */
export class TreeScan {
  readonly #machine: SnapshotMachine;
  readonly #place: TreePlace;
  readonly #options: { readonly withIgnored: boolean };
  readonly #root: ByteText;
  readonly #old: Picture | null;
  read = 0;

  constructor(
    machine: SnapshotMachine,
    place: TreePlace,
    options: { readonly withIgnored: boolean; readonly old: Picture | null },
  ) {
    this.#machine = machine;
    this.#place = place;
    this.#options = options;
    this.#root = toByteText(place.root);
    this.#old = options.old;
  }

  async first(): Promise<Seen> {
    const { trees } = this.#machine;
    const old = this.#old;
    // Git lists names while we look at those of the last time.
    const listing = this.#list();
    let rows = new Float64Array((old?.paths.length ?? 0) * ROW);
    if (old !== null) await trees.lookAll(this.#root, old.paths, rows);
    const listed = await listing;
    if (old !== null && listed.mark === old.listingMark) {
      const directoryRows = new Float64Array(old.directories.length * ROW);
      await trees.lookAll(this.#root, old.directories, directoryRows);
      const oldAt = new Int32Array(old.paths.length);
      for (let i = 0; i < oldAt.length; i++) oldAt[i] = i;
      const changes = this.#changes(old, rows, directoryRows);
      return {
        ...{ listed, paths: old.paths, rows, directoryRows, oldAt },
        directories: old.directories,
        isSame: changes === 0 && (await this.#sameCommits(old, rows)),
        few: changes <= FEW,
      };
    }
    const { paths, nested } = listed.parse();
    const all = [...paths, ...nested].sort(byBytes);
    rows = new Float64Array(all.length * ROW);
    await trees.lookAll(this.#root, all, rows);
    const directories = directoriesOf(all).sort(byBytes);
    const directoryRows = new Float64Array(directories.length * ROW);
    await trees.lookAll(this.#root, directories, directoryRows);
    const where = new Map(old?.paths.map((path, i) => [path, i] as const));
    const oldAt = Int32Array.from(all, (path) => where.get(path) ?? -1);
    let fresh = 0;
    for (let i = 0; i < all.length; i++)
      if (oldAt[i] === -1 || !sameRow(rows, i, old!.rows, oldAt[i]!)) fresh++;
    return {
      ...{ listed, paths: all, rows, directories, directoryRows, oldAt },
      isSame: false,
      few: fresh <= FEW,
    };
  }

  /** Hashes what is new, and makes the trees that differ. */
  async develop(
    put: Put,
    seen: Seen,
    staged: readonly Staged[] | null,
    { pulse, isDry }: { readonly pulse: () => Promise<void>; readonly isDry: boolean },
  ) {
    const { trees, git } = this.#machine;
    const { paths, rows, oldAt } = seen;
    const old = this.#old;
    const hasher = new Hasher(trees, this.#root, put);
    const absentBelow = new Set(
      seen.directories.filter((_, i) => kindAt(seen.directoryRows, i) !== "directory"),
    );
    const isThere = (path: ByteText) => {
      for (let at = parent(path); at !== ""; at = parent(at)) if (absentBelow.has(at)) return false;
      return true;
    };
    const oids: ObjectId[] = new Array(paths.length).fill("");
    const byCommit: ByCommit[] = [];
    let submodules: ReadonlyMap<ByteText, ObjectId> | null = null;
    for (let i = 0; i < paths.length; i++) {
      const path = paths[i]!;
      const kind = kindAt(rows, i);
      if (kind === null || (absentBelow.size > 0 && !isThere(path))) continue;
      if (isGitsOwn(path)) {
        hasher.leftOut.set(path, "a name that some systems take for Git's own directory");
        continue;
      }
      if (kind === "directory") {
        submodules ??= await this.#submodules(staged);
        oids[i] = await this.#commitAt(path, submodules.get(path) ?? null);
        if (oids[i] !== "") byCommit.push({ path, commit: oids[i]! });
        else if ((await trees.look(`${this.#root}/${path}/.git`)) !== null)
          hasher.leftOut.set(path, isText(path) ? "a repository without a commit" : UNREADABLE);
        continue;
      }
      const before = oldAt[i]!;
      if (before !== -1 && old!.oids[before] !== "" && sameRow(rows, i, old!.rows, before)) {
        oids[i] = old!.oids[before]!;
        continue;
      }
      if (this.read++ % 64 === 0) await pulse();
      oids[i] = await hasher.hash(path, rows, i);
    }
    const database = new ObjectDatabase(this.#machine.platform, git, objectPlace(this.#machine, this.#place));
    const large = await hasher.large(git, this.#place, paths, rows, isDry ? null : database);
    for (const [i, oid] of large) oids[i] = oid;
    await database.flush();
    if (large.size > 0 && !isDry) await this.#syncPacks();
    const { picture, unlisted, odd } = await this.#assemble(put, seen, oids);
    for (const path of odd) hasher.leftOut.set(path, ODD);
    return { picture, unlisted, hasher, byCommit };
  }

  /** A second look at everything: names, kinds, permissions, sizes and times. */
  async isStill(picture: Picture): Promise<boolean> {
    const { trees } = this.#machine;
    // One after the other: whatever changed until Git had listed the names is seen by the look at them.
    if ((await this.#list()).mark !== picture.listingMark) return false;
    const rows = new Float64Array(picture.rows.length);
    const directoryRows = new Float64Array(picture.directoryRows.length);
    await trees.lookAll(this.#root, picture.paths, rows);
    await trees.lookAll(this.#root, picture.directories, directoryRows);
    for (let i = 0; i < picture.paths.length; i++) {
      const isRepository = kindAt(rows, i) === "directory";
      const isSame = isRepository
        ? sameDirectory(rows, i, picture.rows, i)
        : sameButSpoilt(rows, i, picture.rows, i);
      if (!isSame) return false;
    }
    for (let i = 0; i < picture.directories.length; i++)
      if (!sameDirectory(directoryRows, i, picture.directoryRows, i)) return false;
    return true;
  }

  /** Objects that are kept alive by something else: they need not be written. */
  async known(staged: readonly Staged[] | null, head: ObjectId | null): Promise<Set<ObjectId>> {
    const known = new Set<ObjectId>();
    for (const oids of [this.#old?.oids, this.#old?.directoryTrees])
      for (const oid of oids ?? []) known.add(oid);
    if (this.#old !== null) known.add(this.#old.tree);
    if (staged !== null) for (const oid of blobsOf(staged)) known.add(oid);
    if (staged !== null && head !== null) {
      const args = ["ls-tree", "-r", "-t", "-d", "-z", "--full-tree", head];
      const listed = await ask(this.#machine.git, args, { cwd: this.#place.root }, "reading the last commit");
      for (const [, oid] of byteTextOf(listed).matchAll(/(?:^|\0)040000 tree ([0-9a-f]+)\t/g))
        known.add(oid!);
      known.add((await headTree(this.#machine, this.#place, head)) ?? "");
    }
    known.delete("");
    return known;
  }

  /** What the index and the root itself are like, to see whether anything happened to them. */
  async marks(nowMs: number): Promise<{ readonly indexMark: string; readonly rootMark: string }> {
    return {
      indexMark: await this.#mark(`${toByteText(this.#place.gitDir)}/index`, nowMs),
      rootMark: await this.#mark(this.#root, nowMs),
    };
  }

  async #mark(path: ByteText, nowMs: number): Promise<string> {
    const { clock } = this.#machine.platform;
    const entry = await this.#machine.trees.look(path);
    if (entry === null) return "none";
    const { size, inode, mtimeMs, ctimeMs } = entry;
    // What is still warm may change without a trace.
    const isYoung = Math.max(mtimeMs, ctimeMs) > nowMs - (this.#machine.youngMs ?? YOUNG_MS);
    return isYoung ? `young ${clock.monotonicMs()}` : [size, inode, mtimeMs, ctimeMs].join(" ");
  }

  #list(): Promise<Listed> {
    const { git, platform } = this.#machine;
    return listNames(git, this.#place, this.#options.withIgnored, (data) => platform.digest.sha256(data));
  }

  #changes(old: Picture, rows: Float64Array, directoryRows: Float64Array): number {
    let changes = 0;
    for (let i = 0; i < old.paths.length; i++) {
      const isRepository = kindAt(rows, i) === "directory" && kindAt(old.rows, i) === "directory";
      if (!isRepository && !sameRow(rows, i, old.rows, i)) changes++;
    }
    for (let i = 0; i < old.directories.length; i++)
      if (!sameRow(directoryRows, i, old.directoryRows, i)) changes++;
    return changes;
  }

  /** Repositories inside move on without a trace in the tree around them. */
  async #sameCommits(old: Picture, rows: Float64Array): Promise<boolean> {
    for (let i = 0; i < old.paths.length; i++) {
      if (kindAt(rows, i) !== "directory" || old.oids[i] === "") continue;
      if ((await this.#commitAt(old.paths[i]!, old.oids[i]!)) !== old.oids[i]) return false;
    }
    return true;
  }

  async #submodules(staged: readonly Staged[] | null): Promise<ReadonlyMap<ByteText, ObjectId>> {
    const entries = staged ?? (await readIndex(this.#machine.git, this.#place));
    return new Map(entries.filter(isSubmodule).map(({ path, oid }) => [path, oid] as const));
  }

  /** The commit that a repository inside is on; else what the index has for it. */
  async #commitAt(path: ByteText, recorded: ObjectId | null): Promise<ObjectId> {
    const { platform, git, trees } = this.#machine;
    const root = `${this.#place.root}/${fromByteText(path)}`;
    if (!isText(path) || (await trees.look(`${this.#root}/${path}/.git`)) === null) return recorded ?? "";
    try {
      const repository = await findRepository(platform, root, {}, git);
      return (await headCommit(platform, git, repository)) ?? recorded ?? "";
    } catch (error) {
      if (error instanceof CotenantError) return recorded ?? "";
      throw error;
    }
  }

  async #assemble(put: Put, seen: Seen, oids: readonly ObjectId[]): Promise<Unlisted & { picture: Picture }> {
    const { trees, git } = this.#machine;
    const { paths, rows } = seen;
    const old = this.#old;
    const live = new Set<ByteText>();
    for (let i = 0; i < paths.length; i++) {
      if (oids[i] === "") continue;
      for (let at = parent(paths[i]!); at !== "" && !live.has(at); at = parent(at)) live.add(at);
    }
    // A directory in a file's place may be without listed files as well; a repository is not.
    const nested = new Set(paths.filter((_, i) => kindAt(rows, i) === "directory" && oids[i] !== ""));
    const { unlisted, odd } = await findUnlisted(
      { git, trees, place: this.#place, root: this.#root },
      ["", ...live],
      (directory) => live.has(directory) || nested.has(directory),
      this.#options.withIgnored,
    );
    const directories = [...live, ...unlisted].sort(byBytes);
    const directoryRows = new Float64Array(directories.length * ROW);
    await trees.lookAll(this.#root, directories, directoryRows);
    const leaves: Leaf[] = [];
    const dirty = new Set<ByteText>();
    const touch = (path: ByteText) => {
      for (let at = parent(path); at !== "" && !dirty.has(at); at = parent(at)) dirty.add(at);
    };
    for (let i = 0; i < paths.length; i++) {
      const before = seen.oldAt[i]!;
      if (before === -1 || oids[i] !== old!.oids[before] || treeMode(rows, i) !== treeMode(old!.rows, before))
        touch(paths[i]!);
      if (oids[i] !== "") leaves.push({ path: paths[i]!, mode: treeMode(rows, i), oid: oids[i]! });
    }
    const kept = new Set(paths);
    for (const path of old?.paths ?? []) if (!kept.has(path)) touch(path);
    const clean = new Map<ByteText, ObjectId>();
    old?.directories.forEach((directory, i) => {
      if (live.has(directory) && !dirty.has(directory) && old.directoryTrees[i] !== "")
        clean.set(directory, old.directoryTrees[i]!);
    });
    const built = await buildTrees(put, leaves, clean);
    const picture: Picture = {
      listingMark: seen.listed.mark,
      ...{ paths, rows, oids, directories, directoryRows },
      directoryTrees: directories.map((directory) => built.trees.get(directory) ?? ""),
      tree: built.root,
    };
    return { picture, unlisted, odd };
  }

  /** Git may have put a very large file into a pack of its own. */
  async #syncPacks(): Promise<void> {
    const directory = `${this.#place.commonDir}/objects/pack`;
    const { files } = this.#machine.platform;
    if ((await files.stat(directory)) !== null) await files.syncDirectory(directory);
  }
}

/** Whoever restores it must never write into a Git directory, whatever the file system makes of names. */
export function isGitsOwn(path: ByteText): boolean {
  return /git/i.test(path) && path.split("/").some((name) => isGitDirectoryName(fromByteText(name)));
}

function treeMode(rows: Float64Array, i: number): string {
  const kind = kindAt(rows, i);
  if (kind === "directory") return MODES.submodule;
  if (kind === "symlink") return MODES.symlink;
  return isExecutable(modeAt(rows, i)) ? MODES.executable : MODES.file;
}
