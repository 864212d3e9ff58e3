/** What operations work with on this machine, for the library and for the command line. */
import type { Session } from "./coordinator/session";
import type { Workspace } from "./coordinator/workspace";
import type { DispatchParts } from "./features/dispatch/operations";
import type { LandParts } from "./features/land/operations";
import type { OpenFence } from "./features/publish/claims";

function fenceOf(workspace: Workspace, session: Session): OpenFence {
  return async () => {
    const { claimFence } = await import("./features/ledger/fence");
    return claimFence(workspace, session);
  };
}

export async function landParts(workspace: Workspace, session: Session): Promise<LandParts> {
  const { nodeCommands } = await import("./platform/node/commands");
  const { nodeTrees } = await import("./platform/node/trees");
  const openFence = fenceOf(workspace, session);
  return { workspace, session, trees: nodeTrees(), commands: nodeCommands(), openFence };
}

export async function dispatchParts(
  workspace: Workspace,
  session: Session,
  program: DispatchParts["program"],
): Promise<DispatchParts> {
  const { arePortsFree: areFree } = await import("./platform/node/ports");
  const { findProgram } = await import("./platform/node/programs");
  const place = { path: workspace.surroundings.env["PATH"] ?? "", home: null };
  return {
    ...(await landParts(workspace, session)),
    ...{ program, areFree, openFence: fenceOf },
    hasProgram: async (name) => findProgram(name, [], place) !== null,
  };
}
