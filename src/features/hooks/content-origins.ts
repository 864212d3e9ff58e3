import type { ChangingCommit } from "../../git/commits";
import type { ObjectId } from "../../git/object-name";

/** Where what a commit has at a path comes from, among the commits that are looked at. */
export interface Origins {
  /** Those that made it so: none of their parents has it. */
  readonly own: readonly ChangingCommit[];
  /** Those that have it from a parent which is not looked at. */
  readonly edges: readonly ChangingCommit[];
  /** Merges that have it from one parent, with those parents that have something else. */
  readonly choices: readonly { readonly merge: ChangingCommit; readonly dropped: readonly ObjectId[] }[];
}

/** Follows contents through commits: from each to those of its parents that have the same at the path. */
export class OriginFinder {
  readonly #commits: ReadonlyMap<ObjectId, ChangingCommit>;
  /** By commit: of each parent, the paths that differ from it. */
  readonly #differing: ReadonlyMap<ObjectId, readonly ReadonlySet<string>[]>;

  constructor(commits: readonly ChangingCommit[], paths: ReadonlySet<string>) {
    this.#commits = new Map(commits.map((commit) => [commit.oid, commit]));
    const among = (side: ChangingCommit["sides"][number]) =>
      new Set(side.map(({ path }) => path).filter((path) => paths.has(path)));
    this.#differing = new Map(commits.map(({ oid, sides }) => [oid, sides.map(among)]));
  }

  has(oid: ObjectId): boolean {
    return this.#commits.has(oid);
  }

  /** Of one of the paths. A commit that is not looked at has no origins here. */
  of(oid: ObjectId, path: string): Origins {
    const own: ChangingCommit[] = [];
    const edges = new Set<ChangingCommit>();
    const choices: { merge: ChangingCommit; dropped: readonly ObjectId[] }[] = [];
    const seen = new Set([oid]);
    // A list and no recursion: there may be thousands in a row. It grows while it is gone through.
    for (const name of seen) {
      const commit = this.#commits.get(name);
      if (commit === undefined) continue;
      const differing = this.#differing.get(name)!;
      const same = commit.parents.filter((_, side) => !differing[side]!.has(path));
      for (const parent of same) {
        if (!this.#commits.has(parent)) edges.add(commit);
        seen.add(parent);
      }
      if (same.length > 0 && same.length < commit.parents.length)
        choices.push({ merge: commit, dropped: commit.parents.filter((parent) => !same.includes(parent)) });
      if (same.length > 0) continue;
      // One without parents has nothing at the path, or made it.
      if (commit.parents.length > 0 || differing[0]!.has(path)) own.push(commit);
      else edges.add(commit);
    }
    return { own, edges: [...edges], choices };
  }
}
