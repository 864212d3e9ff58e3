import { readWorktreeIdentity } from "../../../identity/worktree";
import { listWorktrees } from "../../../identity/worktree-list";
import { type Check, note, ok, type Reported, warning } from "../finding";
import type { Patient } from "../patient";
import { some } from "../words";

const MAKE_ANEW = "run: cotenant worktree init";

/** Whether this worktree knows who it is, and no other thinks the same. */
export const worktreeCheck: Check = {
  name: "worktree",
  async look(patient) {
    const { place, platform, repository } = patient;
    const {
      identity,
      standing,
      warning: words,
    } = await readWorktreeIdentity(platform, place.git, repository);
    const data = { worktree_id: identity.worktreeId, standing };
    const own =
      standing === "stored" || standing === "new"
        ? ok(`${identity.worktreeId}${standing === "new" ? " (not stored yet)" : ""}`, data)
        : standing === "moved"
          ? note(words ?? "this worktree was moved", MAKE_ANEW, data)
          : warning(
              words ?? "its identity is not its own",
              standing === "doubled"
                ? "keep one of the two directories; another worktree is made with 'cotenant worktree create'"
                : MAKE_ANEW,
              data,
            );
    return [own, ...(await twins(patient))];
  },
};

async function twins({ place, platform, repository }: Patient): Promise<Reported[]> {
  const roots = new Map<string, string[]>();
  for (const { worktreeId, root } of await listWorktrees(platform, place.git, repository)) {
    if (worktreeId !== null) roots.set(worktreeId, [...(roots.get(worktreeId) ?? []), root]);
  }
  return [...roots]
    .filter(([, where]) => where.length > 1)
    .map(([worktreeId, where]) =>
      warning(
        `${worktreeId} is the id of several worktrees: ${some(where)}`,
        `in each of them, ${MAKE_ANEW}`,
        {
          worktree_id: worktreeId,
          roots: where,
        },
      ),
    );
}
