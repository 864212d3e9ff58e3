import { CotenantError } from "../../errors/cotenant-error";
import { joinPath, nameIn, normalPath, parentOf, resolveFrom } from "../../identity/path-text";
import { printable } from "../../kernel/ids";
import { isFullRefName } from "../../kernel/keys";

/** Where a new worktree goes unless somebody says: beside the main one, never in it. */
export function defaultPlace(mainRoot: string, configured: string | null, branch: string): string {
  const parent = configured === null ? `${mainRoot}.worktrees` : resolveFrom(mainRoot, configured);
  return joinPath(normalPath(parent), directoryName(branch));
}

/** A branch's name as one directory's name. */
export function directoryName(branch: string): string {
  const name = branch
    .replace(/[^\p{L}\p{N}._@+-]+/gu, "-")
    .replace(/^[-.]+/, "")
    .slice(0, 100);
  return name === "" ? "worktree" : name;
}

export const BRANCHES_FOR_ISSUES = "work/";

/** A branch for an issue: its short id, and a few words of its title. */
export function branchForIssue(shortId: string, title: string): string {
  const words = title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 40)
    .replace(/-+$/, "");
  return `${BRANCHES_FOR_ISSUES}${shortId}${words === "" ? "" : `-${words}`}`;
}

export function checkBranch(name: string): string {
  const isGood = !name.startsWith("-") && name !== "HEAD" && isFullRefName(`refs/heads/${name}`);
  if (isGood) return name;
  throw new CotenantError("E_USAGE", `"${printable(name)}" cannot be the name of a branch`, {
    hint: "use letters, digits, dashes and slashes, for example work/login",
  });
}

/** In which a worktree is made before it gets its own name: a directory beside it, of ours alone. */
export function workshopOf(place: string, id: string): { readonly workshop: string; readonly made: string } {
  const workshop = joinPath(parentOf(place) ?? "/", `.cotenant-new-${id}`);
  return { workshop, made: joinPath(workshop, nameIn(place)) };
}
