import type { WorktreeId } from "./ids";
import { isInside, kindOf, type LeaseKey, pathOf } from "./keys";
import type { Reach } from "./lease";

export interface Extent {
  readonly key: LeaseKey;
  readonly reach: Reach;
  readonly worktreeId: WorktreeId;
}

/** Whether two leases of different holders could not both be valid. */
export function conflict(a: Extent, b: Extent): boolean {
  if (a.reach === "worktree" && b.reach === "worktree" && a.worktreeId !== b.worktreeId) return false;
  return keysConflict(a.key, b.key);
}

export function keysConflict(a: LeaseKey, b: LeaseKey): boolean {
  if (a === b) return true;
  const kindA = kindOf(a);
  const kindB = kindOf(b);
  if (kindA === "dir" && (kindB === "dir" || kindB === "file") && isInside(pathOf(b), pathOf(a))) return true;
  return kindB === "dir" && (kindA === "dir" || kindA === "file") && isInside(pathOf(a), pathOf(b));
}
