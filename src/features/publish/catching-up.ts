import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { parseSignature } from "../../git/commit";
import type { ObjectDatabase } from "../../git/database";
import type { ObjectId } from "../../git/object-name";
import { parseUlid } from "../../kernel/ids";
import { type Lease, sameParty } from "../../kernel/lease";
import { isRefusal } from "../../kernel/refusal";
import { isCutOff } from "../../platform/git";
import { pointAt, trackedTip, trackingRef } from "./base";
import type { Authorship, CommitWriter } from "./commit-writer";
import { type MergePlace, ontoTip, treeWith } from "./merge";
import { silent } from "./push";
import type { PublishedPath } from "./request";

/** A commit of this clone's that the remote's branch lacks. */
export interface Unpushed {
  readonly commit: ObjectId;
  readonly parent: ObjectId;
  readonly agentId: string;
  readonly paths: readonly string[];
}

/** More are nobody's publishes of today. */
const MOST_UNPUSHED = 200;

/** The remote's branch as it is now; null where it has none, or cannot be asked. */
export async function fetchedTip(
  workspace: Workspace,
  remote: string,
  ref: string,
): Promise<ObjectId | null> {
  const { git } = workspace.surroundings;
  const options = ["--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"];
  const spec = `+${ref}:${trackingRef(remote, ref)}`;
  try {
    const { status } = await git.run(["fetch", ...options, "--end-of-options", remote, spec], {
      cwd: workspace.repository.worktreeRoot,
      env: await silent(workspace),
      timeoutMs: workspace.config.values["publish.push_timeout_secs"] * 1000,
    });
    return status === 0 ? await trackedTip(workspace, remote, ref) : null;
  } catch (error) {
    if (isCutOff(error)) return null;
    throw error;
  }
}

export async function isAncestor(
  { surroundings, repository }: Workspace,
  ancestor: ObjectId,
  of: ObjectId,
): Promise<boolean> {
  const args = ["merge-base", "--is-ancestor", ancestor, of];
  return (await surroundings.git.run(args, { cwd: repository.worktreeRoot })).status === 0;
}

/**
 * What was published here and is on no branch of the remote, oldest first. Null where something else is among it, which
 * nobody but its author may rewrite: merges, and commits that no publish of ours has made.
 */
export async function unpushedSince(
  workspace: Workspace,
  remote: string,
  base: ObjectId,
  tip: ObjectId,
): Promise<Unpushed[] | null> {
  const { surroundings, repository } = workspace;
  const args = ["log", "-z", "--reverse", "--format=%H %P%n%B", tip, "--not", base, `--remotes=${remote}`];
  const { stdout } = await surroundings.git.run(args, { cwd: repository.worktreeRoot });
  const found: Unpushed[] = [];
  for (const text of new TextDecoder().decode(stdout).split("\0")) {
    if (text === "") continue;
    const [names = "", ...message] = text.split("\n");
    const [commit = "", ...parents] = names.trim().split(" ");
    const agentId = /^Cotenant-Agent: (\S+)$/m.exec(message.join("\n"))?.[1];
    if (parents.length !== 1 || agentId === undefined || found.length === MOST_UNPUSHED) return null;
    const paths = (await changesOf(workspace, commit)).map(({ path }) => path);
    found.push({ commit, parent: parents[0]!, agentId, paths });
  }
  return found;
}

export interface Rebuilt {
  readonly tip: ObjectId;
  /** Where each of them is now: itself anew, or what had it all already. */
  readonly places: ReadonlyMap<ObjectId, ObjectId>;
}

/** The same changes by the same authors on top of another commit, without a checkout. A real conflict is refused. */
export async function rebuiltOn(
  workspace: Workspace,
  tools: { readonly objects: ObjectDatabase; readonly merging: MergePlace; readonly pen: CommitWriter },
  base: ObjectId,
  commits: readonly Unpushed[],
): Promise<Rebuilt> {
  const { objects, merging, pen } = tools;
  const authorship = await pen.authorship({ author: null, sign: false });
  const places = new Map<ObjectId, ObjectId>();
  let tip = base;
  for (const { commit, parent } of commits) {
    const changes = await changesOf(workspace, commit);
    const draft = new Map(
      changes.map(({ path, mode, oid }) => [path, mode === null ? null : { mode, oid, content: null }]),
    );
    const { tree: tipTree } = await pointAt(objects, tip);
    const onto = await ontoTip(merging, {
      draft,
      base: await pointAt(objects, parent),
      tipTree,
      optimistic: new Set(),
    });
    if (onto.size > 0) {
      const tree = await treeWith(objects, tipTree, onto);
      tip = await again(tools, commit, { tree, parents: [tip] }, authorship);
    }
    places.set(commit, tip);
  }
  return { tip, places };
}

async function again(
  { objects, pen }: { readonly objects: ObjectDatabase; readonly pen: CommitWriter },
  commit: ObjectId,
  made: { readonly tree: ObjectId; readonly parents: readonly ObjectId[] },
  { author, committer, sign }: Authorship,
): Promise<ObjectId> {
  const text = new TextDecoder().decode((await objects.read(commit))?.content);
  const end = text.indexOf("\n\n");
  const wrote = /^author (.*)$/m.exec(text.slice(0, end))?.[1] ?? "";
  const signed = { ...made, parents: [...made.parents], author: parseSignature(wrote) ?? author, committer };
  return pen.write(objects, { ...signed, message: text.slice(end + 2) }, sign);
}

/**
 * Where a publish is now that was put on top of the remote's meanwhile: by the same author, at the same time, in the same
 * words. Null where the branch does not have it.
 */
export async function placeOn(
  workspace: Workspace,
  commit: ObjectId,
  tip: ObjectId,
): Promise<ObjectId | null> {
  if (await isAncestor(workspace, commit, tip)) return commit;
  const { surroundings, repository } = workspace;
  const show = async (...args: string[]) => {
    const format = ["log", "-z", "--first-parent", "--format=%H %an <%ae> %at%n%B"];
    const { stdout } = await surroundings.git.run([...format, ...args], { cwd: repository.worktreeRoot });
    return new TextDecoder().decode(stdout).split("\0");
  };
  const said = (entry: string) => entry.slice(entry.indexOf(" "));
  const [wanted = ""] = await show("-1", commit);
  const found = (await show(`-${MOST_UNPUSHED}`, tip)).find((entry) => said(entry) === said(wanted));
  return found === undefined ? null : found.slice(0, found.indexOf(" "));
}

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
  const ids = [...text.matchAll(/^Cotenant-Lease: (\w{26})$/gm)].map(([, id]) => parseUlid(id!));
  const refs = ids.flatMap((leaseId) => (isRefusal(leaseId) ? [] : [{ key: null, leaseId }]));
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
  const form = ["-r", "--root", "--no-commit-id", "--no-renames", "--raw", "--no-abbrev", "-z"];
  const args = ["diff-tree", ...form, "--ignore-submodules=none", commit];
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
