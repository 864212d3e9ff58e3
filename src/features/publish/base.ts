import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import type { ObjectDatabase } from "../../git/database";
import type { ObjectId } from "../../git/object-name";
import { readRef } from "../../git/refs";
import { printable } from "../../kernel/ids";
import { commitOf, mainRef, mainRemote } from "../hooks/divergence";
import { branchName, refuseSymbolic } from "./branch-rules";

/** A commit and its tree; both null where there is nothing yet. */
export interface Point {
  readonly commit: ObjectId | null;
  readonly tree: ObjectId | null;
}

const NOTHING_YET: Point = { commit: null, tree: null };

/** Where the branch is; null where there is no such branch. A branch that only stands for another is refused. */
export async function tipOf(workspace: Workspace, ref: string): Promise<ObjectId | null> {
  const { surroundings, repository } = workspace;
  const value = await readRef(surroundings.platform, surroundings.git, repository, ref);
  if (value === null) return null;
  return "oid" in value ? value.oid : refuseSymbolic(ref, value.target);
}

export async function pointAt(objects: ObjectDatabase, commit: ObjectId | null): Promise<Point> {
  return commit === null ? NOTHING_YET : { commit, tree: (await objects.readCommit(commit)).tree };
}

/** Where this clone keeps the remote's branch. */
export function trackingRef(remote: string, ref: string): string {
  return `refs/remotes/${remote}/${branchName(ref)}`;
}

/** The remote's branch as it was when it was fetched last; null where it never was. */
export async function trackedTip(
  { surroundings, repository }: Workspace,
  remote: string,
  ref: string,
): Promise<ObjectId | null> {
  const tracking = trackingRef(remote, ref);
  const value = await readRef(surroundings.platform, surroundings.git, repository, tracking);
  return value !== null && "oid" in value ? value.oid : null;
}

/** The remote whose copy of this very branch a base is: `origin/work/x` for `work/x`. Null where it is something else. */
export function remoteOfBase(typed: string | null, ref: string): string | null {
  const [name, end] = [typed?.replace(/^refs\/remotes\//, "") ?? "", `/${branchName(ref)}`];
  return name.length > end.length && name.endsWith(end) ? name.slice(0, -end.length) : null;
}

/**
 * What the changes are meant against: what the caller says, else the branch, else the remote's branch of that name, else the
 * remote's default branch.
 */
export async function resolveBase(
  workspace: Workspace,
  objects: ObjectDatabase,
  wish: { readonly base: string | null; readonly push?: string | null | undefined },
  ref: string,
  tip: ObjectId | null,
): Promise<Point> {
  if (wish.base !== null) return pointAt(objects, await commitNamed(workspace, wish.base));
  if (tip !== null) return pointAt(objects, tip);
  const { surroundings, repository, config } = workspace;
  const remote = wish.push ?? (await mainRemote(surroundings.git, repository.worktreeRoot));
  const tracked = remote === null ? null : await trackedTip(workspace, remote, ref);
  if (tracked !== null) return pointAt(objects, tracked);
  const configured = config.values["global_operations.main_branch"];
  const main = await mainRef(surroundings.git, repository.worktreeRoot, configured);
  if (main !== null) return pointAt(objects, main.commit);
  const head = await commitOf(surroundings.git, repository.worktreeRoot, "HEAD");
  return pointAt(objects, head);
}

async function commitNamed({ surroundings, repository }: Workspace, typed: string): Promise<ObjectId> {
  const isName = typed !== "" && typed.length <= 1_000 && !/[\x00-\x1f\x7f]/.test(typed);
  const commit = isName ? await commitOf(surroundings.git, repository.worktreeRoot, typed) : null;
  if (commit !== null) return commit;
  throw new CotenantError("E_NOT_FOUND", `--base names no commit: "${printable(typed)}"`, {
    hint: "name a branch, a tag or a commit; fetch it first, if it is on the remote",
    data: { base: printable(typed, 500) },
  });
}
