import type { Context, Parsed } from "../../../cli/grammar/command";
import type { Place } from "../place";
import { openPlace } from "../place";
import { harnessPid } from "./flags";
import { worldOf } from "./world-of";

/** The caller's own session here, for people and scripts. */
export async function ownPlace(context: Context, parsed: Parsed): Promise<Place> {
  const workspace = await context.workspace();
  const { agentId, sessionId } = await workspace.agent();
  const world = worldOf(workspace.surroundings, harnessPid(parsed));
  const holder = world.platform.processes.self();
  return openPlace(world, workspace.repository, { agentId, sessionId, mainAgentId: agentId, holder });
}
