import type { Flag } from "../../../cli/grammar/command";
import { readStdin } from "../../../cli/terminal/stdin";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";

export const harnessFlag: Readonly<Record<string, Flag>> = {
  harness: { value: "<name>", choices: ["claude"], meaning: "whose event is on standard input" },
};

const LONGEST = 1024 * 1024;

/** The event that a harness writes to standard input. */
export async function eventFrom(): Promise<Readonly<Record<string, unknown>>> {
  const text = await readStdin(LONGEST);
  try {
    const event: unknown = JSON.parse(text);
    if (typeof event === "object" && event !== null && !Array.isArray(event))
      return event as Record<string, unknown>;
  } catch {
    // As for whatever else is no object.
  }
  throw new CotenantError("E_USAGE", "standard input has no event: one JSON object is expected", {
    hint: "harnesses call this; 'cotenant agent list' shows what is installed",
  });
}

export function mainRootOf({ repository }: Workspace): string {
  if (repository.mainWorktreeRoot !== null) return repository.mainWorktreeRoot;
  throw new CotenantError("E_NOT_A_REPO", "the repository has no main worktree to make others beside", {
    hint: "make the worktree with 'git worktree add'",
  });
}
