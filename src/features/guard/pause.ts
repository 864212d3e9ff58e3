import { printable } from "../../kernel/ids";
import { belongsTo, effectiveReach } from "../../kernel/lease";
import { notWithin, PAUSE_FACT, pauseData, pausedMessage, pauseIn } from "../../kernel/pause";
import { andMore } from "../../kernel/printing";
import type { Verdict } from "./answers";
import { reachOf } from "./holders";
import type { GuardedWorktree } from "./worktree";
import type { WriteTarget } from "./write-target";

/** Null where it is not paused, or where the session holds all of it. A look: the store decides about what is taken. */
export async function refusedWhilePaused(
  place: GuardedWorktree,
  targets: readonly WriteTarget[],
): Promise<Verdict | null> {
  const { coordinator, session, settings } = place;
  const pause = pauseIn(await coordinator.facts({ names: [PAUSE_FACT] }));
  if (pause === null) return null;
  const { actor } = session;
  const reach = reachOf(settings.acrossWorktrees);
  const wants = targets.map((target) => ({
    ...target,
    reach: effectiveReach(target.key, reach),
    worktreeId: actor.worktreeId,
  }));
  const around = await coordinator.overlapping(wants);
  const own = around.filter(({ lease, standing }) => standing === "valid" && belongsTo(lease, actor));
  const missing = notWithin(
    own.map(({ lease }) => lease),
    wants,
  );
  return missing.length === 0 ? null : refusedByPause(pausedMessage(pause), pauseData(pause), missing);
}

const MOST_NAMED = 5;

export function refusedByPause(
  why: string,
  data: Readonly<Record<string, unknown>>,
  targets: readonly WriteTarget[],
): Verdict {
  const shown = targets.slice(0, MOST_NAMED).map(({ path }) => printable(path, 300));
  const more = andMore(targets.length - shown.length);
  return {
    isAllowed: false,
    isHardStop: false,
    code: "E_PAUSED",
    data: { ...data, files: targets.map(({ path }) => ({ path })) },
    reason: [
      `cotenant: ${shown.join(", ")}${more}: ${why}. Nothing was written.`,
      "Go on with files that you hold already, and do not write this one by another way. A person ends the pause: cotenant resume",
    ].join("\n"),
  };
}
