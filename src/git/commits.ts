import { CotenantError, limitError } from "../errors/cotenant-error";
import type { Git, GitPlace } from "../platform/git";
import { gitWords } from "../platform/git-answers";
import {
  type OwnChange,
  ownChanges,
  type PathChange,
  parseBatch,
  parseTreeDiffs,
  type ReadCommit,
  readCommit,
  type TreePair,
} from "./commit-text";
import type { ObjectId } from "./object-name";

/** Commits, as `git rev-list` takes them. */
export interface Revisions {
  readonly names: readonly string[];
  /** `--not --remotes=… --not`, before the names. */
  readonly options: readonly string[];
}

/** A commit, and what it changes itself. */
export interface ChangingCommit extends ReadCommit {
  /** Against its parent; of a merge, only what is as in none of its parents. */
  readonly changes: readonly OwnChange[];
  /** Against each of its parents, in their order. */
  readonly sides: readonly (readonly PathChange[])[];
}

export interface ReadingLimits {
  readonly commits: number;
  /** Changed paths, of all commits together. */
  readonly changes: number;
}

export const READING_LIMITS: ReadingLimits = { commits: 20_000, changes: 2_000_000 };

const EMPTY_TREE: Readonly<Record<number, ObjectId>> = {
  40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
  64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
};
/** So many are asked for at once: an answer is held whole. */
const PORTION = 1_000;
const TIMEOUT_MS = 60_000;

/**
 * The one reader of commits that are about to be pushed, were received, or are looked at later. It goes by the objects
 * themselves: nothing that whoever made them can write (names, messages, replacements) changes how they are read. What
 * cannot be read, and what is beyond a limit, throws; whoever asks decides what "cannot tell" means.
 */
export class CommitReader {
  readonly #git: Git;
  readonly #place: GitPlace;
  readonly #limits: ReadingLimits;

  constructor(git: Git, place: GitPlace, limits: ReadingLimits = READING_LIMITS) {
    this.#git = git;
    // A replacement is a ref, and refs can be pushed.
    this.#place = { ...place, env: { ...place.env, GIT_NO_REPLACE_OBJECTS: "1" } };
    this.#limits = limits;
  }

  /** Their names, parents before children. */
  async list({ names, options }: Revisions): Promise<ObjectId[]> {
    const most = this.#limits.commits;
    const text = await this.#output([
      "rev-list",
      "--topo-order",
      `--max-count=${most + 1}`,
      ...options,
      "--end-of-options",
      ...names,
      "--",
    ]);
    const oids = new TextDecoder().decode(text).split("\n").slice(0, -1);
    if (!oids.every((oid) => /^[0-9a-f]{40,64}$/.test(oid))) throw unreadable("the list of commits");
    if (oids.length > most) throw tooMany(`more than ${most} commits`);
    return oids.reverse();
  }

  async read(oids: readonly ObjectId[]): Promise<ReadCommit[]> {
    const commits: ReadCommit[] = [];
    for (const portion of portions(oids)) {
      const bytes = await this.#output(["cat-file", "--batch"], `${portion.join("\n")}\n`);
      const objects = parseBatch(bytes, portion);
      if (objects === null) throw unreadable("a commit");
      for (const { oid, type, content } of objects) {
        const commit = type === "commit" ? readCommit(oid, content) : null;
        if (commit === null) throw unreadable(`object ${oid}`);
        commits.push(commit);
      }
    }
    return commits;
  }

  /** The commits among the revisions with what each of them changes, parents before children. */
  async changing(revisions: Revisions): Promise<ChangingCommit[]> {
    const commits = await this.read(await this.list(revisions));
    const trees = await this.#treesOf(commits);
    const pairs = commits.flatMap((commit) => parentTrees(commit, trees).map((tree) => [tree, commit.tree]));
    const differences = await this.#differences(pairs as unknown as TreePair[], []);
    let at = 0;
    return commits.map((commit) => {
      const count = Math.max(commit.parents.length, 1);
      const sides = differences.slice(at, at + count);
      at += count;
      return { ...commit, changes: ownChanges(sides), sides };
    });
  }

  /**
   * What differs between two commits, however many are between them. `from` null: everything is new. With `under`, only of
   * these files and directories.
   */
  async difference(
    from: ObjectId | null,
    to: ObjectId,
    under: readonly string[] = [],
  ): Promise<PathChange[]> {
    const read = await this.read(from === null ? [to] : [to, from]);
    const [{ tree }] = read as [ReadCommit];
    const before = from === null ? emptyTreeLike(tree) : read[1]!.tree;
    return (await this.#differences([[before, tree]], under))[0]!;
  }

  async isAncestor(ancestor: ObjectId, of: ObjectId): Promise<boolean> {
    const { status, stderr } = await this.#run(["merge-base", "--is-ancestor", ancestor, of]);
    if (status === 0 || status === 1) return status === 0;
    throw failed(stderr);
  }

  /** Where two histories part; several where they were merged crosswise. */
  async mergeBases(one: ObjectId, other: ObjectId): Promise<ObjectId[]> {
    const { status, stdout, stderr } = await this.#run(["merge-base", "--all", one, other]);
    if (status !== 0 && status !== 1) throw failed(stderr);
    return new TextDecoder().decode(stdout).split("\n").slice(0, -1);
  }

  /** The trees of all their parents, most of which are among them. */
  async #treesOf(commits: readonly ReadCommit[]): Promise<ReadonlyMap<ObjectId, ObjectId>> {
    const trees = new Map(commits.map(({ oid, tree }) => [oid, tree]));
    const others = new Set(commits.flatMap(({ parents }) => parents).filter((oid) => !trees.has(oid)));
    for (const { oid, tree } of await this.read([...others])) trees.set(oid, tree);
    return trees;
  }

  async #differences(pairs: readonly TreePair[], under: readonly string[]): Promise<PathChange[][]> {
    const all: PathChange[][] = [];
    let changes = 0;
    for (const portion of portions(pairs)) {
      const bytes = await this.#output(
        [
          "diff-tree",
          "--stdin",
          "-r",
          "--raw",
          "-z",
          "--no-renames",
          "--no-abbrev",
          "--ignore-submodules=none",
          "--",
          ...under,
        ],
        `${portion.map(([from, to]) => `${from} ${to}`).join("\n")}\n`,
      );
      const parsed = parseTreeDiffs(bytes, portion);
      if (parsed === null) throw unreadable("what Git says of a commit's changes");
      for (const one of parsed) changes += one.length;
      if (changes > this.#limits.changes) throw tooMany(`more than ${this.#limits.changes} changed paths`);
      all.push(...parsed);
    }
    return all;
  }

  async #output(args: readonly string[], input = ""): Promise<Uint8Array> {
    const { status, stdout, stderr } = await this.#run(args, input);
    if (status === 0) return stdout;
    throw failed(stderr);
  }

  async #run(args: readonly string[], input = "") {
    return this.#git.run(args, { ...this.#place, input, timeoutMs: TIMEOUT_MS });
  }
}

function parentTrees({ tree, parents }: ReadCommit, trees: ReadonlyMap<ObjectId, ObjectId>): ObjectId[] {
  return parents.length === 0 ? [emptyTreeLike(tree)] : parents.map((oid) => trees.get(oid)!);
}

function emptyTreeLike(tree: ObjectId): ObjectId {
  return EMPTY_TREE[tree.length]!;
}

function* portions<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < items.length; at += PORTION) yield items.slice(at, at + PORTION);
}

function failed(stderr: string): CotenantError {
  return new CotenantError("E_GIT", `Git cannot read the commits: ${gitWords(stderr)}`, {
    hint: "look at the range: both ends must be here ('git fetch')",
  });
}

function unreadable(what: string): CotenantError {
  return new CotenantError("E_GIT", `${what} cannot be read`, {
    hint: "in a shallow clone fetch the rest first: git fetch --unshallow; else 'git fsck' says what is damaged",
  });
}

function tooMany(what: string): CotenantError {
  return limitError(`${what} are too many to be looked at at once`, "push them in parts");
}
