/** What operations work with on this machine, for the library and for the command line. */
import type { Session } from "./coordinator/session";
import type { Workspace } from "./coordinator/workspace";
import type { DispatchParts } from "./features/dispatch/operations";

export async function dispatchParts(
  workspace: Workspace,
  session: Session,
  program: DispatchParts["program"],
): Promise<DispatchParts> {
  const { landParts } = await import("./features/land/operations");
  const { claimFenceIn } = await import("./features/publish/operations");
  const { arePortsFree: areFree } = await import("./platform/node/ports");
  const { findProgram } = await import("./platform/node/programs");
  const place = { path: workspace.surroundings.env["PATH"] ?? "", home: null };
  return {
    ...(await landParts(workspace, session)),
    ...{ program, areFree, openFence: claimFenceIn },
    hasProgram: async (name) => findProgram(name, [], place) !== null,
  };
}
