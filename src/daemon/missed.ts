import type { MissedDaemon, Workspace } from "../coordinator/workspace";
import { asksOverHttp, NOTHING_WRITTEN } from "./http-door";
import { standingOf } from "./life";
import { daemonPlace } from "./place";

const START = "cotenant daemon start";

/** Null where nobody counts on one, or one is there. */
export async function missedDaemon(
  workspace: Pick<Workspace, "repository" | "surroundings" | "config">,
): Promise<MissedDaemon | null> {
  const { repository, surroundings, config } = workspace;
  const isAsked = asksOverHttp(workspace);
  const isToRenew =
    config.values["coordination.auto_renew_leases"] && config.values["daemon.autostart"] !== true;
  if (!isAsked && !isToRenew) return null;
  const { state } = await standingOf(surroundings.platform, daemonPlace(repository.controlDir));
  if (state !== "none") return null;
  return isAsked
    ? { what: "http", message: NOTHING_WRITTEN, next: START }
    : {
        what: "renewals",
        message:
          "leases are to be renewed (coordination.auto_renew_leases), and no daemon is running to do it",
        next: `${START}, or let commands start one: cotenant config set daemon.autostart true`,
      };
}
