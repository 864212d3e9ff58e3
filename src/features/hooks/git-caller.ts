import type { Workspace } from "../../coordinator/workspace";
import { gitPid } from "./note-format";

/** Managers of hooks stand between Git and us. */
const MOST_PARENTS = 6;

/**
 * Whether the `git commit` that runs this hook amends: Git does not tell its hooks when there is a new message. Null where
 * that cannot be seen.
 */
export async function isAmending(workspace: Workspace): Promise<boolean | null> {
  const words = await gitWords(workspace);
  return words === null
    ? null
    : words.includes("commit") && words.some((word) => /^--am(?:e(?:nd?)?)?$/.test(word));
}

/** Whether `git revert` runs this hook: it calls no `pre-commit`. */
export async function isReverting(workspace: Workspace): Promise<boolean> {
  const words = (await gitWords(workspace)) ?? [];
  return words.includes("revert") && !words.includes("commit");
}

/** What Git was asked for that runs this hook; null where that cannot be seen. */
async function gitWords({ surroundings }: Workspace): Promise<readonly string[] | null> {
  const { processes } = surroundings.platform;
  let pid = gitPid(surroundings.env) ?? (await processes.ancestry(processes.self().pid))?.parentPid ?? 0;
  for (let up = 0; pid > 1 && up < MOST_PARENTS; up++) {
    const found = await processes.ancestry(pid);
    if (found === null) return null;
    const [program = "", ...words] = found.words;
    if (/(?:^|\/)git(?:\.exe)?$/.test(program)) return words;
    pid = found.parentPid;
  }
  return null;
}
