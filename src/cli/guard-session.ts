import type { Place } from "../guard/place";
import { openPlace } from "../guard/place";
import { worldOf } from "../guard-node/world-of";
import type { Context, Parsed } from "./command";
import { harnessPid } from "./guard-flags";

/** The caller's own session here, for people and scripts. */
export async function ownPlace(context: Context, parsed: Parsed): Promise<Place> {
  const workspace = await context.workspace();
  const { agentId, sessionId } = await workspace.agent();
  const world = worldOf(workspace.surroundings, harnessPid(parsed));
  const holder = world.platform.processes.self();
  return openPlace(world, workspace.repository, { agentId, sessionId, mainAgentId: agentId, holder });
}
