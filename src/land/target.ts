import type { Workspace } from "../coordinator/workspace";
import { mainRef } from "../enforce/divergence";
import { CotenantError } from "../errors/cotenant-error";
import { printable } from "../kernel/ids";
import { branchName, branchRef, refuseLedger } from "../publish/branch-rules";

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

/** For people, wherever a ref is shown. */
export function shownBranch(ref: string): string {
  return printable(branchName(ref), 200);
}
