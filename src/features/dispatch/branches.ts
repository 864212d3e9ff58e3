import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, policyError } from "../../errors/cotenant-error";
import { currentBranch } from "../../identity/branch";
import type { Environment } from "../../identity/repository";
import { listWorktrees } from "../../identity/worktree-list";
import { printable } from "../../kernel/ids";
import { writeNew } from "../../platform/write-new";
import { judgeStaged } from "../hooks/commit";
import { freshTrailers, messageTrailers } from "../hooks/commit-message";
import { enforced } from "../hooks/path-rules";
import { trailerLines } from "../hooks/trailers";
import { CommitWriter } from "../publish/commit-writer";
import { withLines } from "../publish/message";
import { ask, askLine, askMaybe, LONG_MS } from "../worktrees/git-calls";
import { BRANCHES_FOR_ISSUES } from "../worktrees/names";
import { underWayIn } from "../worktrees/removal-risk";
import type { Station } from "./slots";

/** Neither filters of submodules nor hooks: an agent's worktree is moved from issue to issue by us. */
const QUIET = ["-c", "submodule.recurse=false", "-c", "advice.detachedHead=false"];

export function gitIn({ workspace, root }: Station) {
  const { git } = workspace.surroundings;
  return { git, options: { cwd: root, timeoutMs: LONG_MS } };
}

export async function branchOf({ workspace, gitDir }: Station): Promise<string | null> {
  const { platform, git } = workspace.surroundings;
  return currentBranch(platform, git, gitDir);
}

export async function headOf(station: Station): Promise<string> {
  const { git, options } = gitIn(station);
  return askLine(git, ["rev-parse", "--verify", "HEAD^{commit}"], options, "looking at a worktree");
}

/** Whether anything is there that is not committed, but for what Git ignores and for repositories of their own. */
export async function isDirty(station: Station): Promise<boolean> {
  const args = ["status", "--porcelain", "--ignore-submodules=dirty", "--untracked-files=all", "-z"];
  const entries = await askNames(station, args);
  return entries.some((entry) => !(entry.startsWith("?? ") && entry.endsWith("/")));
}

/** Repositories that an agent has made in its worktree: nothing of ours holds what is in them, so they stay as they are. */
export async function foreignRepositories(station: Station): Promise<string[]> {
  const paths = await askNames(station, ["ls-files", "--others", "--exclude-standard", "-z"]);
  return paths.filter((path) => path.endsWith("/")).map((path) => path.slice(0, -1));
}

/** What a Git says with a NUL after each name. */
export async function askNames(station: Station, args: readonly string[]): Promise<string[]> {
  const { git, options } = gitIn(station);
  const said = await ask(git, args, options, "looking at a worktree");
  return new TextDecoder()
    .decode(said)
    .split("\0")
    .filter((name) => name !== "");
}

/** Of a Git that was killed there: nobody else is in a worker's worktree. */
export async function clearLocks({ workspace, gitDir }: Station): Promise<void> {
  for (const name of ["index", "HEAD"])
    await workspace.surroundings.platform.files.unlink(`${gitDir}/${name}.lock`);
}

/** A merge, a rebase or the like that an agent has left in the middle. */
export function leftUnderWay({ workspace, gitDir }: Station): Promise<string | null> {
  return underWayIn(workspace.surroundings.platform, gitDir);
}

/** As committed. What is not committed must have been kept before. */
export async function discardChanges(station: Station): Promise<void> {
  const { git, options } = gitIn(station);
  await clearLocks(station);
  await ask(git, [...QUIET, "reset", "--hard", "--quiet"], options, "clearing a worker's worktree");
  await ask(git, [...QUIET, "clean", "-fdq"], options, "clearing a worker's worktree");
}

/** As committed, on no branch: whoever wants the branch can have it. What is not committed must have been kept before. */
export async function detachAt(station: Station, commit: string): Promise<void> {
  const { git, options } = gitIn(station);
  await clearLocks(station);
  // Each of them fails where there is nothing of its kind.
  for (const verb of ["rebase", "cherry-pick", "revert", "am"])
    await git.run([...QUIET, verb, "--quit"], options);
  const to = [...QUIET, "checkout", "--quiet", "--force", "--detach", commit, "--"];
  await ask(git, to, options, "moving a worker's worktree");
  await git.run([...QUIET, "bisect", "reset", "HEAD"], options);
  await ask(git, [...QUIET, "clean", "-fdq"], options, "clearing a worker's worktree");
}

/**
 * The branch for an issue, checked out: the one that was begun before, if nobody else has it checked out; a new one at the base
 * otherwise. One that holds nothing beyond the base starts over from there, unless somebody is to go on with it as it is.
 */
export async function checkOutBranch(
  station: Station,
  wanted: string,
  base: string,
  { keeps = false }: { readonly keeps?: boolean } = {},
): Promise<string> {
  const { git, options } = gitIn(station);
  const { platform } = station.workspace.surroundings;
  const used = new Set(
    (await listWorktrees(platform, git, station.workspace.repository))
      .filter(({ root, exists }) => exists && root !== station.root)
      .flatMap(({ branch }) => (branch === null ? [] : [branch])),
  );
  for (let nth = 1; nth <= MOST_NAMES; nth++) {
    const branch = nth === 1 ? wanted : `${wanted}-${nth}`;
    if (used.has(branch)) continue;
    const tip = await tipOfBranch(station, branch);
    if (tip === null && (await isFolder(station, branch))) continue;
    const isSpent = tip !== null && !(keeps && nth === 1) && (await isWithin(station, tip, base));
    const args = tip !== null && !isSpent ? [branch] : ["--no-track", "-C", branch, base];
    const to = [...QUIET, "switch", "--quiet", "--discard-changes", ...args];
    await ask(git, to, options, `checking out ${printable(branch, 200)}`);
    return branch;
  }
  throw new CotenantError(
    "E_LIMIT",
    `${MOST_NAMES} branches called ${printable(wanted, 200)} are checked out elsewhere`,
  );
}

const MOST_NAMES = 20;

/** A branch called `…/more` leaves no room for one that is called as its beginning. */
async function isFolder(station: Station, branch: string): Promise<boolean> {
  const { git, options } = gitIn(station);
  const args = ["for-each-ref", "--count=1", "--format=%(refname)", `refs/heads/${branch}/`];
  return (await askLine(git, args, options, "looking for branches below a name")) !== "";
}

/**
 * Commits that an agent has made on no branch: they are given the wanted name where that is free or only behind them, else one like
 * it, and nothing checks out what it is at. Null where a branch has them all.
 */
export async function keepLoose(station: Station, wanted: string): Promise<string | null> {
  const { git, options } = gitIn(station);
  if ((await branchOf(station)) !== null) return null;
  const head = await headOf(station);
  const held = await askLine(
    git,
    [
      "for-each-ref",
      "--count=1",
      `--contains=${head}`,
      "--format=%(refname)",
      "refs/heads/",
      "refs/remotes/",
    ],
    options,
    "looking who has an agent's commits",
  );
  if (held !== "") return null;
  for (let nth = 1; nth <= MOST_NAMES; nth++) {
    const branch = nth === 1 ? wanted : `${wanted}-${nth}`;
    const tip = await tipOfBranch(station, branch);
    if (tip !== null && !(nth === 1 && (await isWithin(station, tip, head)))) continue;
    // Git refuses where another worktree has it checked out.
    const { status } = await git.run(["branch", "--no-track", "--force", branch, head], options);
    if (status === 0) return branch;
  }
  return null;
}

/** Whether the second commit has the first. */
async function isWithin(station: Station, commit: string, other: string): Promise<boolean> {
  const { git, options } = gitIn(station);
  return (await git.run(["merge-base", "--is-ancestor", commit, other], options)).status === 0;
}

/** How many commits the worktree's HEAD has that the base has not. */
export async function commitsSince(station: Station, base: string): Promise<number> {
  const { git, options } = gitIn(station);
  return Number(
    await askLine(git, ["rev-list", "--count", `${base}..HEAD`, "--"], options, "counting commits"),
  );
}

/**
 * Commits everything that is there, by the rules for any commit of this worker's: what others hold is refused, and trailers say on
 * which leases it rests. Null where there is nothing to commit. Git's own hooks do not run, as for a publish.
 */
export async function commitAll(station: Station, message: string): Promise<string | null> {
  const { git, options } = gitIn(station);
  await clearLocks(station);
  const foreign = (await foreignRepositories(station)).map((path) => `:(exclude,literal)${path}`);
  await ask(
    git,
    [...QUIET, "add", "--all", "--sparse", "--", ".", ...foreign],
    options,
    "staging what an agent left",
  );
  return commitStaged(station, message);
}

/** The same of the files of issues alone: whatever else is there is left as it is. */
export async function commitData(station: Station, message: string): Promise<string | null> {
  const { git, options } = gitIn(station);
  await clearLocks(station);
  // An agent may have staged something.
  await ask(git, [...QUIET, "reset", "--quiet"], options, "looking at what an agent staged");
  await ask(
    git,
    [...QUIET, "add", "--all", "--sparse", "--", ".cotenant"],
    options,
    "staging files of issues",
  );
  return commitStaged(station, message);
}

async function commitStaged(station: Station, message: string): Promise<string | null> {
  const { git, options } = gitIn(station);
  const { workspace } = station;
  const judgement = await judgeStaged(workspace);
  if (judgement.changes.length === 0) return null;
  const { refused } = enforced(workspace.config.values["worktree.enforce_leases"], judgement.objections);
  const [first] = refused;
  if (first !== undefined) {
    const more = refused.length === 1 ? "" : ` (and ${refused.length - 1} more)`;
    throw new CotenantError(first.code, `it cannot be committed: ${first.message}${more}`, {
      data: { paths: refused.slice(0, 20).map(({ path }) => path) },
    });
  }
  const given = { ...(await freshTrailers(workspace, judgement)) };
  const lines = await messageTrailers(workspace, given, { text: message, isAmending: false });
  const named = lines.length > 0 ? lines : trailerLines(given, true);
  const whole = named.length === 0 ? `${message}\n` : withLines(message, named);
  await ask(
    git,
    [...QUIET, "commit", "--quiet", "--no-verify", "--cleanup=verbatim", "-F", "-"],
    { ...options, env: namesIn(workspace.surroundings.env), input: whole },
    "committing what an agent left",
  );
  return headOf(station);
}

/** Who commits are by, as whoever started the dispatcher has said it: Git sees no other variable of theirs. */
function namesIn(env: Environment): Record<string, string> {
  const names = ["AUTHOR", "COMMITTER"].flatMap((role) => [`GIT_${role}_NAME`, `GIT_${role}_EMAIL`]);
  return Object.fromEntries(
    names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name] as string]])),
  );
}

/** Nothing could be committed where Git does not know who it is by, or cannot sign what is to be signed. */
export async function requireCommitting(
  { surroundings, repository }: Workspace,
  base: string,
): Promise<void> {
  const { git, env, platform } = surroundings;
  await new CommitWriter(git, repository.commonDir, env, platform.clock).trySigning(base);
}

/** A branch called `work` leaves Git no room for branches called `work/…`. */
export async function requireBranchRoom({ surroundings, repository }: Workspace): Promise<void> {
  const blocking = BRANCHES_FOR_ISSUES.slice(0, -1);
  const args = ["rev-parse", "--verify", "--quiet", `refs/heads/${blocking}`];
  if ((await askMaybe(surroundings.git, args, { cwd: repository.commonDir })) === null) return;
  throw policyError(
    `branches for issues are called ${BRANCHES_FOR_ISSUES}…, and a branch called ${blocking} leaves no room for them`,
    `give it another name: git branch -m ${blocking} my-${blocking}`,
    { ref: `refs/heads/${blocking}` },
  );
}

/**
 * A commit of ours once more, on top of another: lines that both have added to a file of lines are kept, also where this
 * repository does not say so. Null where it conflicts all the same.
 */
export async function carryOver(station: Station, commit: string, onto: string): Promise<string | null> {
  const { git, options } = gitIn(station);
  const { files } = station.workspace.surroundings.platform;
  await detachAt(station, onto);
  const attributes = `${station.gitDir}/cotenant-attributes`;
  await files.unlink(attributes);
  await writeNew(files, attributes, ".cotenant/**/*.jsonl merge=union\n", 0o600);
  const config = [`core.attributesFile=${attributes}`, "core.hooksPath=/dev/null"];
  const { status } = await git.run(
    [...QUIET, ...config.flatMap((one) => ["-c", one]), "cherry-pick", "--allow-empty", commit],
    { ...options, env: namesIn(station.workspace.surroundings.env) },
  );
  if (status === 0) return headOf(station);
  await detachAt(station, onto);
  return null;
}

/** Whether a commit has a file of that name. */
export async function hasPath(station: Station, commit: string, path: string): Promise<boolean> {
  const { git, options } = gitIn(station);
  return (await git.run(["cat-file", "-e", `${commit}:${path}`], options)).status === 0;
}

/** The commit that a branch names; null where there is none. */
function tipOfBranch(station: Station, branch: string): Promise<string | null> {
  const { git, options } = gitIn(station);
  return askMaybe(git, ["rev-parse", "--verify", "--quiet", `refs/heads/${branch}^{commit}`], options);
}

/** What a branch has of an issue's own files, into the worktree. */
export async function takeData(station: Station, branch: string, id: string): Promise<void> {
  const { git, options } = gitIn(station);
  for (const path of [`.cotenant/issues/${id}`, `.cotenant/gates/results/${id}.jsonl`])
    await git.run([...QUIET, "checkout", "--quiet", `refs/heads/${branch}`, "--", path], options);
}

/** A branch at a commit, made or moved; for commits of ours alone. */
export async function putBranch(station: Station, branch: string, commit: string): Promise<void> {
  const { git, options } = gitIn(station);
  await ask(git, ["update-ref", `refs/heads/${branch}`, commit], options, "naming a commit");
}

/** Where it is at this commit still; null: wherever it is. */
export async function dropBranchAt(station: Station, branch: string, commit: string | null): Promise<void> {
  const { git, options } = gitIn(station);
  const at = commit === null ? [] : [commit];
  await askMaybe(git, ["update-ref", "-d", `refs/heads/${branch}`, ...at], options);
}
