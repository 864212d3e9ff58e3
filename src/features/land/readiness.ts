import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import type { PathChange } from "../../git/commit-text";
import type { Yard } from "../worktrees/place";
import { requireLander } from "./allowance";
import { occupantOf, refuseUnfit } from "./checkout-fitness";
import { queuePausedError, queuePauseOf } from "./queue-pause";
import { refuseUntrusted, settleEarlier } from "./queue-run";
import { baseOf } from "./remote-tip";

/**
 * What would keep a run of the queue from landing anything now, before anybody has done any work for it. `adds` is what landings
 * will add to a target that lacks it.
 */
export async function refuseUnready(
  yard: Yard,
  target: string,
  { remote, adds }: { readonly remote: string | null; readonly adds: readonly string[] },
): Promise<void> {
  const { workspace, session } = yard;
  requireLander(
    workspace,
    session,
    "run",
    "a person starts it; or leave out --land: branches stay as they are, and a person lands them",
  );
  refuseUntrusted(workspace);
  const pause = await queuePauseOf(workspace, target);
  if (pause !== null) throw queuePausedError(pause);
  // What is pushed lands on the remote, also where the checkout here cannot follow.
  if (remote !== null) return refuseApart(workspace, target, remote);
  // A lander that was killed in the middle may have left it half moved.
  await settleEarlier(yard);
  const occupant = await occupantOf(workspace, target);
  if (occupant !== null) await refuseUnfit(yard, occupant, target, await addedTo(workspace, target, adds));
}

/** A remote that cannot be asked now may be back when something is to land. */
async function refuseApart(workspace: Workspace, target: string, remote: string): Promise<void> {
  try {
    await baseOf(workspace, target, remote);
  } catch (error) {
    if (!(error instanceof CotenantError) || error.code !== "E_REMOTE_UNREACHABLE") throw error;
  }
}

async function addedTo(
  { surroundings, repository }: Workspace,
  target: string,
  paths: readonly string[],
): Promise<PathChange[]> {
  const added: PathChange[] = [];
  for (const path of paths) {
    const { status } = await surroundings.git.run(["cat-file", "-e", `${target}:${path}`], {
      cwd: repository.worktreeRoot,
    });
    if (status !== 0) added.push({ path, status: "added", oid: null, before: null, mode: null });
  }
  return added;
}
