import type { Coordinator } from "../coordinator/contract";
import type { Workspace } from "../coordinator/workspace";
import { thisBuild } from "./build";
import { DaemonCoordinator } from "./client";
import { ledgerMark } from "./ledger-mark";
import { launch, standingOf } from "./life";
import { daemonPlace, processOf, readRecord } from "./place";

/** The engine of a process that has a daemon to ask; null where none is running that speaks as we do. */
export function daemonEngine(workspace: Workspace, direct: Coordinator): DaemonCoordinator | null {
  const place = daemonPlace(workspace.repository.controlDir);
  // Who lives on may see one come.
  if (!workspace.isLongLived && readRecord(place) === null) return null;
  return new DaemonCoordinator({
    platform: workspace.surroundings.platform,
    direct,
    find: () => readRecord(place),
    policy: workspace.config.policy,
    build: thisBuild(),
    ledger: ledgerMark(workspace),
  });
}

/** Without waiting for it: whoever comes next has it. A command is never worse off for that. */
export async function startIfNone(workspace: Workspace, program: string): Promise<void> {
  const { surroundings, repository } = workspace;
  const place = daemonPlace(repository.controlDir);
  const { processes } = surroundings.platform;
  const record = readRecord(place);
  if (record !== null && (await processes.liveness(processOf(record, processes.self()))) === "alive") return;
  const { state } = await standingOf(surroundings.platform, place);
  if (state === "none") launch(program, surroundings);
}
