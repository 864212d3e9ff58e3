import { CotenantError } from "../../errors/cotenant-error";
import { below, joinPath } from "../../identity/path-text";
import type { Git } from "../../platform/git";
import { gitWords } from "../../platform/git-answers";
import type { Platform } from "../../platform/platform";

/** A worktree as a harness wants it: where the harness itself would have made it, and on the branch it would have. */
export interface MadeWorktree {
  readonly path: string;
  readonly branch: string;
  /** False when it was there already. */
  readonly isNew: boolean;
}

const LONGEST_NAME = 100;
const PATIENCE_MS = 100_000;

/** Names come from people and models: what is no part of a file's or a branch's name is left out. */
function worktreeName(wanted: unknown): string {
  const name = (typeof wanted === "string" ? wanted : "")
    .replace(/[^\p{L}\p{N}._-]+/gu, "-")
    .replace(/\.{2,}/g, ".")
    .replace(/^[.-]+|[.-]+$|\.lock$/g, "")
    .slice(0, LONGEST_NAME);
  if (name !== "") return name;
  throw new CotenantError("E_USAGE", "the harness gave no name for the worktree", {
    hint: 'the event needs a "name" with letters or digits in it',
  });
}

export async function makeWorktree(git: Git, main: string, wanted: unknown): Promise<MadeWorktree> {
  const name = worktreeName(wanted);
  const path = joinPath(main, `.claude/worktrees/${name}`);
  const branch = `worktree-${name}`;
  const run = async (...args: string[]) => git.run(args, { cwd: main, timeoutMs: PATIENCE_MS });
  const list = await run("worktree", "list", "--porcelain", "-z");
  if (new TextDecoder().decode(list.stdout).split("\0").includes(`worktree ${path}`))
    return { path, branch, isNew: false };
  const has = async (ref: string) =>
    (await run("rev-parse", "--verify", "--quiet", "--end-of-options", ref)).status === 0;
  const remote = "refs/remotes/origin/HEAD";
  const base = (await has(remote)) ? remote : "HEAD";
  const added = (await has(`refs/heads/${branch}`))
    ? await run("worktree", "add", "--quiet", "--end-of-options", path, branch)
    : await run("worktree", "add", "--quiet", "--no-track", "-b", branch, "--end-of-options", path, base);
  if (added.status === 0) return { path, branch, isNew: true };
  throw new CotenantError("E_GIT", `Git made no worktree ${path}: ${gitWords(added.stderr)}`, {
    hint: `run: git worktree add -b ${branch} ${path} (it says what is in the way)`,
    data: { path, branch },
  });
}

/** Ignored files that a project wants in every worktree: what `.worktreeinclude` names and Git does not have. */
export async function includedFiles({ files }: Platform, git: Git, main: string): Promise<string[]> {
  const list = joinPath(main, ".worktreeinclude");
  if ((await files.stat(list))?.kind !== "file") return [];
  const others = async (how: string) => {
    const { stdout } = await git.run(["ls-files", "--others", "--ignored", "-z", how], { cwd: main });
    return new TextDecoder()
      .decode(stdout)
      .split("\0")
      .filter((name) => name !== "");
  };
  const ignored = new Set(await others("--exclude-standard"));
  return (await others(`--exclude-from=${list}`)).filter((name) => ignored.has(name));
}

/** Removes a worktree that has nothing in it that is nowhere else; else says why it stays. Its branch goes only if it is merged. */
export async function dropWorktree(git: Git, main: string, path: string): Promise<string | null> {
  if (below(path, main) === "") return "it is the main worktree";
  const run = async (...args: string[]) => git.run(args, { cwd: main, timeoutMs: PATIENCE_MS });
  // Of a detached HEAD. What was amended or rebased is meant to be gone.
  const lone = await run(
    "-C",
    path,
    "rev-list",
    "--count",
    "HEAD",
    "--not",
    "--branches",
    "--tags",
    "--remotes",
  );
  const count = Number(new TextDecoder().decode(lone.stdout));
  if (count > 0) return `it has ${count === 1 ? "1 commit" : `${count} commits`} that no branch leads to`;
  const { status, stderr } = await run("worktree", "remove", "--end-of-options", path);
  // Git's own words advise to use force.
  if (/contains modified or untracked files/.test(stderr)) return "it has changes that are not committed";
  if (status !== 0) return gitWords(stderr.trim().replace(/^fatal: /, ""));
  const branch = /\/\.claude\/worktrees\/([^/]+)$/.exec(path)?.[1];
  // Only what is merged goes: Git itself refuses the rest.
  if (branch !== undefined) await run("branch", "--quiet", "-d", "--end-of-options", `worktree-${branch}`);
  return null;
}
