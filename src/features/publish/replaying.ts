import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import type { ObjectDatabase } from "../../git/database";
import type { ObjectId } from "../../git/object-name";
import { ulidIn } from "../../kernel/ids";
import { type Lease, sameParty } from "../../kernel/lease";
import type { PublishedPath } from "./request";

/**
 * The caller's leases that a commit of ours says it rests on, as far as they still stand. By their ids: one that was taken
 * since, for other work, is not among them.
 */
export async function leasesNamedIn(
  { coordinator }: Pick<Workspace, "coordinator">,
  { actor }: Session,
  objects: ObjectDatabase,
  commit: ObjectId,
  shown: readonly string[],
): Promise<Lease[]> {
  const text = new TextDecoder().decode((await objects.read(commit))?.content);
  const ids = [...text.matchAll(/^Cotenant-Lease: (\w{26})$/gm)].map(([, id]) => ulidIn(id));
  const refs = ids.flatMap((leaseId) => (leaseId === null ? [] : [{ key: null, leaseId }]));
  const found = refs.length === 0 ? [] : await coordinator.find(refs);
  const isOwn = (lease: Lease) =>
    sameParty(lease, actor) || (lease.secretHash !== null && shown.includes(lease.secretHash));
  return found
    .filter(({ standing, lease }) => standing === "valid" && isOwn(lease))
    .map(({ lease }) => lease);
}

/** What a commit changes against its first parent. */
export async function changesOf(
  { surroundings, repository }: Workspace,
  commit: ObjectId,
): Promise<(PublishedPath & { readonly oid: ObjectId })[]> {
  const args = [
    "diff-tree",
    "-r",
    "--root",
    "--no-commit-id",
    "--no-renames",
    "--raw",
    "--no-abbrev",
    "--ignore-submodules=none",
    "-z",
    commit,
  ];
  const { stdout } = await surroundings.git.run(args, { cwd: repository.worktreeRoot });
  const fields = new TextDecoder().decode(stdout).split("\0");
  const paths: (PublishedPath & { oid: ObjectId })[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [, mode = "", , oid = "", status = ""] = fields[at]!.split(" ");
    const change = status === "A" ? "added" : status === "D" ? "deleted" : "changed";
    paths.push({ path: fields[at + 1]!, change, mode: change === "deleted" ? null : mode, oid });
  }
  return paths;
}
