import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, during, protectedError, usageError } from "../../errors/cotenant-error";
import { currentBranch } from "../../identity/branch";
import { decode, joinPath } from "../../identity/path-text";
import type { Repository } from "../../identity/repository";
import { printable } from "../../kernel/ids";
import { isFullRefName } from "../../kernel/keys";
import { shellWord } from "../../kernel/printing";
import type { Git } from "../../platform/git";
import type { Platform } from "../../platform/platform";

const HEADS = "refs/heads/";
const ALWAYS_PROTECTED = ["main", "master"];

/** The full name of a branch that somebody typed. */
export function branchRef(text: string): string {
  const ref = text.startsWith("refs/") ? text : `${HEADS}${text}`;
  const name = ref.slice(HEADS.length);
  // `@` is short for HEAD wherever Git reads a name: nobody could name a branch that is called so.
  const isBranch =
    ref.startsWith(HEADS) && isFullRefName(ref) && !name.startsWith("-") && !["HEAD", "@"].includes(name);
  if (isBranch) return ref;
  throw usageError(`"${printable(text)}" is not the name of a branch`, "for example --branch work/login");
}

export function branchName(ref: string): string {
  return ref.slice(HEADS.length);
}

/** The ledger's branch is cotenant's own: what is on it comes from 'cotenant sync', and from nobody's commits. */
export function refuseLedger(ref: string, ledgerBranch: string | null): void {
  if (ledgerBranch === null || !isSame(branchName(ref), ledgerBranch.replace(/^refs\/heads\//, ""))) return;
  throw protectedError(
    `${printable(branchName(ref), 200)} is the ledger's own branch`,
    "publish to another branch; issues get there by 'cotenant sync'",
    { ref, why: "sync.ledger_branch" },
  );
}

/** Letters' case makes no difference: on many file systems it makes none between branches either. */
export function isProtected(ref: string, alsoProtected: readonly (string | null)[]): boolean {
  return protectionOf(ref, alsoProtected) !== undefined;
}

export function refuseProtected(ref: string, alsoProtected: readonly string[]): void {
  const known = protectionOf(ref, alsoProtected);
  if (known === undefined) return;
  throw new CotenantError("E_PROTECTED_REF", `${printable(branchName(ref), 200)} is protected`, {
    data: { ref, why: ALWAYS_PROTECTED.includes(known) ? "always" : "publish.protected" },
  });
}

function protectionOf(ref: string, alsoProtected: readonly (string | null)[]): string | undefined {
  const name = branchName(ref).toLowerCase();
  return [...ALWAYS_PROTECTED, ...alsoProtected]
    .filter((one) => one !== null)
    .find((one) => one.replace(/^refs\/heads\//, "").toLowerCase() === name);
}

export function refuseSymbolic(ref: string, target: string): never {
  throw new CotenantError(
    "E_PROTECTED_REF",
    `${printable(branchName(ref), 200)} only stands for ${printable(target, 200)}`,
    { hint: "publish to that branch by its own name, if it may be published to", data: { ref, target } },
  );
}

/**
 * PROTOCOL 20: a branch that any worktree is on, or is rebasing or bisecting. Its index would be stale afterwards, and the
 * next innocent commit there would take back what was published. Reads files only, except where HEAD is in a reftable.
 */
export async function refuseCheckedOut(
  { surroundings, repository }: Pick<Workspace, "surroundings" | "repository">,
  ref: string,
): Promise<void> {
  const [first] = await usesOf(surroundings.platform, surroundings.git, repository, ref);
  if (first === undefined) return;
  const { why, where } = first;
  throw protectedError(
    `${printable(branchName(ref), 200)} is ${why} in ${printable(where, 300)}`,
    "publish to a branch that nobody has checked out; there, 'git merge' or 'git pull' it",
    { ref, why, worktree: where },
  );
}

/** A worktree in which a branch is in use. */
export interface BranchUse {
  readonly gitDir: string;
  readonly why: "checked out" | "being rebased" | "being bisected";
  readonly where: string;
}

/** Every worktree that is on the branch, or is rebasing or bisecting it. */
export async function usesOf(
  platform: Platform,
  git: Git,
  repository: Pick<Repository, "commonDir" | "config">,
  ref: string,
): Promise<BranchUse[]> {
  const uses: BranchUse[] = [];
  for (const gitDir of await gitDirectories(platform, repository)) {
    const why = await useOf(platform, git, gitDir, ref);
    if (why !== null) uses.push({ gitDir, why, where: await worktreeAt(platform, gitDir) });
  }
  return uses;
}

/** Git keeps branches as paths: a new one cannot be below one that is there, nor the directory of another. */
export async function refuseBeside(git: Git, cwd: string, ref: string): Promise<void> {
  const parts = ref.split("/");
  const above = parts.slice(3).map((_, at) => parts.slice(0, at + 3).join("/"));
  const args = ["for-each-ref", "--format=%(refname)", ...above, `${ref}/`];
  const { stdout } = await git.run(args, { cwd });
  const taken = decode(stdout)
    .split("\n")
    .find((name) => above.includes(name) || name.startsWith(`${ref}/`));
  if (taken === undefined) return;
  const [name, there] = [branchName(ref), branchName(taken)];
  const other = above.includes(taken) ? `${there}-${name.slice(there.length + 1)}` : `${name}-new`;
  throw usageError(
    `${printable(name, 200)} cannot be made beside the branch ${printable(there, 200)}: Git keeps them as a file and its directory`,
    `publish to that one (--branch ${shellWord(there)}), or under another name (--branch ${shellWord(other)})`,
    { ref, taken },
  );
}

/** Of the main worktree, if there is one, and of every linked one. */
async function gitDirectories(
  { files }: Platform,
  { commonDir, config }: Pick<Repository, "commonDir" | "config">,
): Promise<string[]> {
  const linked = joinPath(commonDir, "worktrees");
  const names = (await files.readDirectory(linked)) ?? [];
  return [...(config.bare ? [] : [commonDir]), ...names.sort().map((name) => joinPath(linked, name))];
}

async function useOf(
  platform: Platform,
  git: Git,
  gitDir: string,
  ref: string,
): Promise<BranchUse["why"] | null> {
  if ((await platform.files.stat(joinPath(gitDir, "HEAD"))) === null) return null;
  const head = await currentBranch(platform, git, gitDir);
  if (head !== null && isSame(head.startsWith("refs/") ? head : HEADS + head, ref)) return "checked out";
  for (const name of ["rebase-merge/head-name", "rebase-apply/head-name"])
    if (isSame((await lineOf(platform, joinPath(gitDir, name))) ?? "", ref)) return "being rebased";
  const updating = (await textOf(platform, joinPath(gitDir, "rebase-merge/update-refs"))) ?? "";
  if (updating.split("\n").some((line) => isSame(line.trim(), ref))) return "being rebased";
  const bisected = await lineOf(platform, joinPath(gitDir, "BISECT_START"));
  return bisected !== null && isSame(HEADS + bisected, ref) ? "being bisected" : null;
}

function isSame(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

async function worktreeAt(platform: Platform, gitDir: string): Promise<string> {
  const pointer = await lineOf(platform, joinPath(gitDir, "gitdir"));
  return (pointer ?? gitDir).replace(/\/\.git$/, "");
}

async function lineOf(platform: Platform, path: string): Promise<string | null> {
  return (await textOf(platform, path))?.trim() ?? null;
}

async function textOf({ files }: Platform, path: string): Promise<string | null> {
  return during("looking at what is checked out", path, async () => {
    const bytes = await files.readFile(path);
    return bytes === null ? null : decode(bytes);
  });
}
