import { CotenantError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import type { Git, GitOptions } from "../../platform/git";
import { gitFailed } from "../../platform/git-answers";

/** How the current history stands to the main branch's tip. */
export type MainHistory =
  /** There is no main branch, so nothing can be lacking. */
  | { readonly kind: "no-main" }
  | { readonly kind: "has"; readonly main: string }
  | {
      readonly kind: "lacks";
      readonly main: string;
      /** The history is cut off in this clone: it may only look so. */
      readonly isShallow: boolean;
      readonly isUnborn: boolean;
    };

/**
 * `configured`: `global_operations.main_branch`; `of`: whose history is looked at. Runs Git, and nothing but Git: never
 * under the store's mutex.
 */
export async function mainHistory(
  git: Git,
  cwd: string,
  configured: string | null,
  of = "HEAD",
): Promise<MainHistory> {
  const main = await mainRef(git, cwd, configured);
  const head = await commitOf(git, cwd, of);
  if (main === null) {
    if (configured === null || head === null) return { kind: "no-main" };
    throw new CotenantError("E_CONFIG", `there is no branch "${printable(configured, 100)}" here`, {
      hint: "fetch it, or name the right one: 'cotenant config show global_operations.main_branch' says where it is set",
      data: { key: "global_operations.main_branch", value: configured },
    });
  }
  if (head === main.commit) return { kind: "has", main: main.name };
  const isAncestor = head !== null && (await hasAncestor(git, cwd, main.commit, head));
  if (isAncestor) return { kind: "has", main: main.name };
  const shallow = await answer(git, cwd, ["rev-parse", "--is-shallow-repository"]);
  return { kind: "lacks", main: main.name, isShallow: shallow === "true", isUnborn: head === null };
}

/** What a change for everybody is refused with. */
export function diverged(history: Extract<MainHistory, { kind: "lacks" }>): CotenantError {
  const { main, isShallow, isUnborn } = history;
  const name = printable(main, 100);
  const data = { main_branch: main, shallow: isShallow, unborn: isUnborn };
  if (isShallow)
    return new CotenantError(
      "E_DIVERGED",
      `this clone is shallow, and does not show that it has all of ${name}`,
      { hint: "run 'git fetch --unshallow', and try again", data },
    );
  return new CotenantError(
    "E_DIVERGED",
    `the current branch lacks commits of ${name}, and what concerns everybody is changed on top of them`,
    {
      hint: isUnborn
        ? `begin the branch at ${name}: git switch -c <branch> ${name}`
        : `run 'git rebase ${name}' or 'git merge ${name}', and try again`,
      data,
    },
  );
}

export interface MainRef {
  /** As Git shows it: `origin/main`. */
  readonly name: string;
  /** What the branch is called where it is: `main`. */
  readonly branch: string;
  readonly commit: string;
}

/** The remote's HEAD, or the configured branch; its copy of the remote's before the local one. */
export async function mainRef(git: Git, cwd: string, configured: string | null): Promise<MainRef | null> {
  const remote = await mainRemote(git, cwd);
  const inRemote = (name: string) => (remote === null ? [] : [`refs/remotes/${remote}/${name}`]);
  const candidates =
    configured === null
      ? ["HEAD", "main", "master"].flatMap((name) =>
          name === "HEAD" ? inRemote(name) : [...inRemote(name), `refs/heads/${name}`],
        )
      : [...inRemote(configured), `refs/heads/${configured}`];
  for (const ref of candidates) {
    const commit = await commitOf(git, cwd, ref);
    if (commit === null) continue;
    const target = (await answer(git, cwd, ["symbolic-ref", "--quiet", "--end-of-options", ref])) ?? ref;
    const name = target.replace(/^refs\/(?:heads|remotes)\//, "");
    const isRemote = remote !== null && target.startsWith(`refs/remotes/${remote}/`);
    return { name, branch: isRemote ? name.slice(remote.length + 1) : name, commit };
  }
  return null;
}

/** `origin`, or the only one there is. */
export async function mainRemote(git: Git, cwd: string): Promise<string | null> {
  const names = ((await answer(git, cwd, ["remote"])) ?? "").split("\n").filter((name) => name !== "");
  return names.includes("origin") ? "origin" : names.length === 1 ? names[0]! : null;
}

export async function commitOf(
  git: Git,
  cwd: string,
  ref: string,
  env: GitOptions["env"] = {},
): Promise<string | null> {
  const args = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${ref}^{commit}`];
  const { status, stdout } = await git.run(args, { cwd, env });
  return status === 0 ? new TextDecoder().decode(stdout).trim() : null;
}

async function hasAncestor(git: Git, cwd: string, ancestor: string, head: string): Promise<boolean> {
  const { status, stderr } = await git.run(["merge-base", "--is-ancestor", ancestor, head], { cwd });
  if (status === 0 || status === 1) return status === 0;
  throw gitFailed("Git cannot compare the histories", stderr);
}

async function answer(git: Git, cwd: string, args: readonly string[]): Promise<string | null> {
  const { status, stdout } = await git.run(args, { cwd });
  return status === 0 ? new TextDecoder().decode(stdout).trim() : null;
}
