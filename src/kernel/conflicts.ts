import type { WorktreeId } from "./ids";
import {
  directoriesAbove,
  dirKeyOf,
  isInside,
  isPathKey,
  kindOf,
  type LeaseKey,
  pathOf,
  type RepoPath,
} from "./keys";
import type { Reach } from "./lease";

export interface Extent {
  readonly key: LeaseKey;
  readonly reach: Reach;
  readonly worktreeId: WorktreeId;
}

/** Whether two leases of different holders could not both be valid. */
export function conflict(a: Extent, b: Extent): boolean {
  return reachesMeet(a, b) && keysConflict(a.key, b.key);
}

function reachesMeet(a: Extent, b: Extent): boolean {
  return a.reach !== "worktree" || b.reach !== "worktree" || a.worktreeId === b.worktreeId;
}

export function keysConflict(a: LeaseKey, b: LeaseKey): boolean {
  if (a === b) return true;
  const kindA = kindOf(a);
  const kindB = kindOf(b);
  if (kindA === "dir" && (kindB === "dir" || kindB === "file") && isInside(pathOf(b), pathOf(a))) return true;
  return kindB === "dir" && (kindA === "dir" || kindA === "file") && isInside(pathOf(a), pathOf(b));
}

/**
 * Many extents, asked which of them conflict with another one. Agrees with `conflict`, at a cost that grows
 * with the depth of paths and the number of answers instead of with the number of extents.
 */
export class ExtentIndex<E extends Extent> {
  readonly #byKey = new Map<LeaseKey, E[]>();
  readonly #byPath: { readonly path: RepoPath; readonly extent: E }[] = [];
  #hasDirectories = false;

  constructor(extents: Iterable<E>) {
    for (const extent of extents) {
      const same = this.#byKey.get(extent.key);
      if (same === undefined) this.#byKey.set(extent.key, [extent]);
      else same.push(extent);
      if (!isPathKey(extent.key)) continue;
      this.#byPath.push({ path: pathOf(extent.key), extent });
      this.#hasDirectories ||= kindOf(extent.key) === "dir";
    }
    this.#byPath.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
  }

  conflictingWith(other: Extent): E[] {
    const found: E[] = [];
    this.#visit(other, (extent) => {
      found.push(extent);
      return false;
    });
    return found;
  }

  conflictsWith(other: Extent): boolean {
    return this.#visit(other, () => true);
  }

  /** Calls `enough` for each extent that conflicts, until it says so. */
  #visit(other: Extent, enough: (extent: E) => boolean): boolean {
    const among = (extents: readonly E[] | undefined) =>
      extents?.some((extent) => reachesMeet(extent, other) && enough(extent)) ?? false;
    if (among(this.#byKey.get(other.key))) return true;
    if (!isPathKey(other.key)) return false;
    const path = pathOf(other.key);
    if (this.#hasDirectories) {
      for (const above of directoriesAbove(path)) {
        if (among(this.#byKey.get(dirKeyOf(above)))) return true;
      }
    }
    if (kindOf(other.key) !== "dir") return false;
    // Everything inside a directory stands together in the sorted list: from `D/` up to, not including, `D0`.
    const everything = path === ".";
    const end = everything ? this.#byPath.length : this.#firstFrom(`${path}0`);
    for (let i = everything ? 0 : this.#firstFrom(`${path}/`); i < end; i++) {
      const { path: inner, extent } = this.#byPath[i]!;
      if (isInside(inner, path) && reachesMeet(extent, other) && enough(extent)) return true;
    }
    return false;
  }

  #firstFrom(text: string): number {
    let low = 0;
    let high = this.#byPath.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#byPath[middle]!.path < text) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
