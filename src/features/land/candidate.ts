import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { parseSignature, type Signature } from "../../git/commit";
import { CommitReader } from "../../git/commits";
import { alternateObjects, type ObjectDatabase } from "../../git/database";
import type { ObjectId } from "../../git/object-name";
import { readRef } from "../../git/refs";
import { decode, joinPath } from "../../identity/path-text";
import { printable } from "../../kernel/ids";
import { gitFailed } from "../../platform/git-answers";
import { modesFor } from "../../store/layout";
import { withObjectsApart } from "../publish/agent-index";
import { isAncestor } from "../publish/catching-up";
import type { CommitWriter } from "../publish/commit-writer";
import type { LandEntry } from "./entry";
import { type Lander, mergeMessage, replayedMessage, squashMessage, type Told } from "./message";
import { shownBranch } from "./target";

/** What an entry comes to on top of a commit. */
export type Built =
  | { readonly kind: "candidate"; readonly commit: ObjectId; readonly makers: readonly Told[] }
  /** All of it is there already. */
  | { readonly kind: "contained" }
  | { readonly kind: "conflict"; readonly paths: readonly string[] }
  /** The branch, or its commit, is not in this clone any more. */
  | { readonly kind: "gone"; readonly message: string }
  | { readonly kind: "refused"; readonly message: string; readonly hint?: string };

export interface CandidateTools {
  readonly workspace: Workspace;
  readonly objects: ObjectDatabase;
  readonly pen: CommitWriter;
  readonly lander: Lander;
}

const MERGE_MS = 5 * 60_000;
/** A longer branch is almost certainly a mistake. */
const MOST_REPLAYED = 1_000;

/** Puts an entry onto a commit, without a checkout. Nothing refers to what is made. */
export async function candidateOn(tools: CandidateTools, entry: LandEntry, onto: ObjectId): Promise<Built> {
  const { workspace } = tools;
  const missing = await whyGone(tools, entry);
  if (missing !== null) return { kind: "gone", message: missing };
  if (await isAncestor(workspace, entry.commit, onto)) return { kind: "contained" };
  const commits = await commitsOf(tools, entry, onto).catch((error: unknown) => {
    // Of this branch alone: those behind it are not at fault.
    if (error instanceof CotenantError && error.code === "E_LIMIT") return error;
    throw error;
  });
  if (commits instanceof CotenantError) return { kind: "refused", message: commits.message };
  if (entry.method === "rebase") return replayed(tools, entry, onto, commits);
  const merged = await mergedTree(workspace, [onto, entry.commit]);
  if (merged.kind !== "tree") return merged;
  const base = await tools.objects.readCommit(onto);
  if (entry.method === "squash" && merged.tree === base.tree) return { kind: "contained" };
  const authorship = await tools.pen.authorship({ author: null, sign: false });
  const { committer, sign } = authorship;
  const isSquash = entry.method === "squash";
  const author = isSquash ? await soleAuthor(tools, commits, authorship.author) : authorship.author;
  const message = isSquash
    ? squashMessage(entry, commits, tools.lander, nameOf(author))
    : mergeMessage(entry, tools.lander);
  const parents = isSquash ? [onto] : [onto, entry.commit];
  const commit = await tools.pen.write(
    tools.objects,
    { tree: merged.tree, parents, author, committer, message },
    sign,
  );
  return { kind: "candidate", commit, makers: commits };
}

async function whyGone(
  { workspace, objects }: CandidateTools,
  { branch, commit }: LandEntry,
): Promise<string | null> {
  const { surroundings, repository } = workspace;
  const value = await readRef(surroundings.platform, surroundings.git, repository, branch);
  if (value === null) return "the branch was deleted after it was added";
  if ("target" in value) return `by now the branch only stands for ${shownBranch(value.target)}`;
  const isThere = (await objects.look(commit))?.type === "commit";
  return isThere ? null : `its commit ${commit.slice(0, 12)} is not in this clone any more`;
}

/** What the branch has beyond the other side, oldest first, merges left out. */
async function commitsOf(
  { workspace, objects }: CandidateTools,
  { commit, method }: LandEntry,
  onto: ObjectId,
): Promise<Told[]> {
  const { surroundings, repository } = workspace;
  const reader = new CommitReader(surroundings.git, { cwd: repository.worktreeRoot });
  const options = ["--no-merges", "--not", onto, "--not"];
  const commits = await reader.read(await reader.list({ names: [commit], options }));
  const told: Told[] = [];
  for (const { oid, message } of commits) {
    // A merge commit credits only the lander.
    const author = method === "merge" ? null : await authorOf(objects, oid);
    told.push({ oid, message, author: author === null ? "" : nameOf(author) });
  }
  return told;
}

const GIT_ENV = { GIT_NO_REPLACE_OBJECTS: "1" };

type Merged =
  | { readonly kind: "tree"; readonly tree: ObjectId }
  | Extract<Built, { readonly kind: "conflict" | "refused" }>;

/** Git's own merge of two commits, with the repository's merge drivers. `env`: says where else it finds objects. */
async function mergedTree(
  { surroundings, repository }: Workspace,
  [ours, theirs]: readonly [ObjectId, ObjectId],
  env: Readonly<Record<string, string>> = GIT_ENV,
): Promise<Merged> {
  const args = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs];
  const { status, stdout, stderr } = await surroundings.git.run(["-c", "core.fsync=loose-object", ...args], {
    cwd: repository.worktreeRoot,
    env,
    timeoutMs: MERGE_MS,
  });
  const [tree = "", ...names] = decode(stdout).split("\0");
  if (status === 0) return { kind: "tree", tree: tree.trim() };
  if (status === 1) return { kind: "conflict", paths: [...new Set(names.filter((name) => name !== ""))] };
  if (/unrelated histories/.test(stderr)) return unrelated({ surroundings, repository });
  throw gitFailed("Git could not merge", stderr);
}

async function unrelated({
  surroundings,
  repository,
}: Pick<Workspace, "surroundings" | "repository">): Promise<Merged> {
  const message = "it has no commit in common with the target";
  const { files } = surroundings.platform;
  if ((await files.stat(joinPath(repository.commonDir, "shallow"))) === null)
    return { kind: "refused", message };
  return {
    kind: "refused",
    message: `${message} in this clone, which is shallow`,
    hint: "fetch the whole history: git fetch --unshallow",
  };
}

const NOBODY: Signature = { name: "cotenant", email: "cotenant@localhost", time: 0, zone: "+0000" };

/**
 * Each commit of the branch anew, with its author and its words. Git merges commits only against where their histories
 * part: so that it is the replayed commit's own parent, three commits without any other history are made apart from the
 * repository.
 */
async function replayed(
  tools: CandidateTools,
  entry: LandEntry,
  onto: ObjectId,
  commits: readonly Told[],
): Promise<Built> {
  if (commits.length > MOST_REPLAYED)
    return { kind: "refused", message: `it has ${commits.length} commits; ${MOST_REPLAYED} can be rebased` };
  const { workspace, objects, pen, lander } = tools;
  const authorship = await pen.authorship({ author: null, sign: false });
  const onTop = async (made: ObjectDatabase, env: Readonly<Record<string, string>>): Promise<Built> => {
    let tip = onto;
    for (const commit of commits) {
      const { tree, parents } = await objects.readCommit(commit.oid);
      const { tree: tipTree } = await objects.readCommit(tip);
      const before =
        parents[0] === undefined ? await made.writeTree([]) : (await objects.readCommit(parents[0])).tree;
      const bare = (of: ObjectId, from: ObjectId[]) =>
        made.writeCommit({ tree: of, parents: from, author: NOBODY, committer: NOBODY, message: "replay\n" });
      const base = await bare(before, []);
      const sides = [await bare(tipTree, [base]), await bare(tree, [base])] as const;
      await made.flush();
      // What was written for the commit before must be found by the next Git.
      await objects.reveal();
      const merged = await mergedTree(workspace, sides, env);
      if (merged.kind !== "tree") return merged;
      if (merged.tree === tipTree) continue;
      const author = (await authorOf(objects, commit.oid)) ?? authorship.author;
      const message = replayedMessage(entry, commit, lander);
      const { committer, sign } = authorship;
      tip = await pen.write(objects, { tree: merged.tree, parents: [tip], author, committer, message }, sign);
    }
    return tip === onto ? { kind: "contained" } : { kind: "candidate", commit: tip, makers: commits };
  };
  const { surroundings, repository, store } = workspace;
  const { directory: directoryMode } = modesFor(repository.config.sharedRepository);
  const at = { ...surroundings, directory: store.layout.agentIndex, directoryMode };
  return withObjectsApart(at, repository, "land", onTop, (root) => ({
    ...alternateObjects(root),
    ...GIT_ENV,
  }));
}

async function authorOf(objects: ObjectDatabase, commit: ObjectId): Promise<Signature | null> {
  const text = decode((await objects.read(commit))?.content ?? new Uint8Array());
  const head = text.slice(0, Math.max(0, text.indexOf("\n\n")));
  return parseSignature(/^author (.*)$/m.exec(head)?.[1] ?? "");
}

/** Of a squash: whoever wrote all of it, else whoever lands it. */
async function soleAuthor(
  { objects }: CandidateTools,
  commits: readonly Told[],
  otherwise: Signature,
): Promise<Signature> {
  const names = new Set(commits.map(({ author }) => author));
  const last = commits.at(-1);
  if (names.size !== 1 || last === undefined) return otherwise;
  return (await authorOf(objects, last.oid)) ?? otherwise;
}

function nameOf({ name, email }: Signature): string {
  return printable(`${name} <${email}>`, 300);
}
