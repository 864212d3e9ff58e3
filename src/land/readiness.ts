import type { Yard } from "../worktrees/place";
import { requireLander } from "./allowance";
import { occupantOf, refuseUnfit } from "./checkout-fitness";
import { queuePausedError, queuePauseOf } from "./pausing";
import { refuseUntrusted, settleEarlier } from "./running";

/** What would keep a run of the queue from landing anything now, before anybody has done any work for it. */
export async function refuseUnready(yard: Yard, target: string, isPushed: boolean): Promise<void> {
  const { workspace, session } = yard;
  requireLander(workspace, session, "run");
  refuseUntrusted(workspace);
  const pause = await queuePauseOf(workspace, target);
  if (pause !== null) throw queuePausedError(pause);
  // What is pushed lands on the remote, also where the checkout here cannot follow.
  if (isPushed) return;
  // A lander that was killed in the middle may have left it half moved.
  await settleEarlier(yard);
  const occupant = await occupantOf(workspace, target);
  if (occupant !== null) await refuseUnfit(yard, occupant, target, []);
}
