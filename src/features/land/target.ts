import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, retriesError } from "../../errors/cotenant-error";
import { joinPath } from "../../identity/path-text";
import { printable } from "../../kernel/ids";
import { mainRef } from "../hooks/divergence";
import { branchName, branchRef, refuseLedger, usesOf } from "../publish/branch-rules";

/** What is typed, else `land.target`, else the main branch as `global_operations.main_branch` or the remote has it, else main. */
export async function targetRef(workspace: Workspace, typed: string | null): Promise<string> {
  const { config, surroundings, repository } = workspace;
  const { values } = config;
  const named = typed ?? values["land.target"] ?? values["global_operations.main_branch"];
  const main = named === null ? await mainRef(surroundings.git, repository.worktreeRoot, null) : null;
  const ref = namedBranch(named ?? main?.branch ?? "main", "for example --target main");
  refuseLedger(ref, values["sync.ledger_branch"]);
  return ref;
}

/** The full name of a branch that somebody typed. */
export function namedBranch(text: string, hint: string): string {
  try {
    return branchRef(text);
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    throw new CotenantError("E_USAGE", `"${printable(text)}" is not the name of a branch`, { hint });
  }
}

export function noTarget(target: string): CotenantError {
  return new CotenantError("E_NOT_FOUND", `there is no branch ${shownBranch(target)} to land on`, {
    hint: "name another one with --target; 'git branch' shows those that there are",
    data: { target },
  });
}

/** After more tries than anybody would wait for. */
export async function neverStill(
  { surroundings, repository, config }: Workspace,
  target: string,
  { tries, moves }: { readonly tries: number; readonly moves: number },
): Promise<CotenantError> {
  const { platform, git } = surroundings;
  const uses = await usesOf(platform, git, repository, target);
  // Git locks the HEAD of whoever is on the branch as well.
  const locks = [
    joinPath(repository.commonDir, `${target}.lock`),
    ...uses.map(({ gitDir }) => joinPath(gitDir, "HEAD.lock")),
  ];
  const there = await Promise.all(locks.map((path) => platform.files.lstat(path)));
  const lock = locks.find((_, at) => there[at] !== null);
  const data = { target, retries: config.values["publish.retries"], setting: "publish.retries" };
  const name = shownBranch(target);
  if (moves === 0 && lock !== undefined)
    return retriesError(
      `another Git holds ${name}: ${printable(lock, 300)} is there`,
      "run the queue again when it is done; if no Git is at work, one that was killed has left that file behind",
      { ...data, lock },
    );
  const what =
    moves === 0 ? `could not be changed in ${tries} tries` : `moved ${moves} times while it was landed on`;
  return new CotenantError("E_RETRIES_EXHAUSTED", `${name} ${what}`, {
    hint: "run the queue again in a moment; publish.retries says how often it is tried",
    data,
  });
}

/** For people, wherever a ref is shown. */
export function shownBranch(ref: string): string {
  return printable(branchName(ref), 200);
}
