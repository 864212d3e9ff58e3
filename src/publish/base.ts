import type { Workspace } from "../coordinator/workspace";
import { commitOf, mainRef } from "../enforce/divergence";
import { CotenantError } from "../errors/cotenant-error";
import { printable } from "../kernel/ids";
import type { ObjectDatabase } from "../objects/database";
import type { ObjectId } from "../objects/object-name";
import { readRef } from "../objects/refs";
import { refuseSymbolic } from "./branch-rules";

/** A commit and its tree; both null where there is nothing yet. */
export interface Point {
  readonly commit: ObjectId | null;
  readonly tree: ObjectId | null;
}

export const NOTHING_YET: Point = { commit: null, tree: null };

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

/** What the changes are meant against: what the caller says, else the branch, else the remote's default branch. */
export async function resolveBase(
  workspace: Workspace,
  objects: ObjectDatabase,
  typed: string | null,
  tip: ObjectId | null,
): Promise<Point> {
  if (typed !== null) return pointAt(objects, await commitNamed(workspace, typed));
  if (tip !== null) return pointAt(objects, tip);
  const { surroundings, repository, config } = workspace;
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
