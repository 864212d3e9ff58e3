import type { Config } from "../../config/load";
import { variableOf } from "../../config/schema";
import { type CotenantError, policyError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import type { Git } from "../../platform/git";
import { diverged, type MainRef, mainHistory, mainRef } from "./divergence";

/** Where what concerns everybody is to be changed. */
export interface GlobalChangePlace {
  readonly git: Git;
  readonly cwd: string;
  readonly config: Pick<Config, "values" | "origin">;
  /** How a command begins that changes it, for whoever has to run it again. */
  readonly command: string;
  /** Null where HEAD is on none: then whatever branch gets it later is asked about. */
  readonly branch: string | null;
  /** Whose history it is changed on top of. */
  readonly of?: string;
  /** The files that are changed. */
  readonly paths: readonly string[];
}

/**
 * Why the configuration, the types or the gates may not be changed there; null where they may: on an allowed branch or the
 * main one, and on top of the main branch's history.
 */
export async function globalRefusal(place: GlobalChangePlace): Promise<CotenantError | null> {
  const { git, cwd, config, command, branch, of = "HEAD", paths } = place;
  const { values } = config;
  const configured = values["global_operations.main_branch"];
  const main = await mainRef(git, cwd, configured);
  const allowed = values["global_operations.allowed_branches"];
  if (main !== null && branch !== null && !isAllowed(branch, allowed, main)) {
    if (await areThere(git, cwd, main.commit, paths)) {
      const how = (name: string) => allowedHere(config, command, name);
      return notAllowed(branch, allowed, main.branch, how);
    }
  }
  if (!values["global_operations.require_main_history"]) return null;
  const history = await mainHistory(git, cwd, configured, of);
  return history.kind === "lacks" ? diverged(history) : null;
}

export function isAllowed(
  branch: string,
  allowed: readonly string[],
  main: Pick<MainRef, "branch">,
): boolean {
  return branch === main.branch || allowed.includes(branch);
}

/** Whether the main branch has any of them: what is set up for the first time changes nothing for anybody. */
async function areThere(git: Git, cwd: string, commit: string, paths: readonly string[]): Promise<boolean> {
  for (const path of paths) {
    const { status } = await git.run(["cat-file", "-e", `${commit}:${path}`], { cwd });
    if (status === 0) return true;
  }
  return false;
}

/** In a clone. No variable adds to what the repository's own file lists. */
export function allowedHere(config: Pick<Config, "origin">, command: string, branch: string): string {
  const key = "global_operations.allowed_branches";
  return config.origin(key).source === "worktree"
    ? `add it there to ${key} in .cotenant/config.toml`
    : `this once: ${variableOf(key)}=${branch} ${command} …`;
}

export function notAllowed(
  branch: string,
  allowed: readonly string[],
  main: string,
  howToAllow: (branch: string) => string,
): CotenantError {
  const names = [...new Set([main, ...allowed])].map((name) => printable(name, 100));
  const shown = printable(branch, 100);
  return policyError(
    `configuration, types and gates are changed on ${names.join(" or ")} only, and this is ${shown}`,
    `git switch ${names[0]}; or, if ${shown} may change them too, ${howToAllow(shown)}`,
    { branch, allowed_branches: allowed, main_branch: main },
  );
}
