import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import type { Actor } from "../../../kernel/commands";

/** Who is looking, if that can be told: to look, nobody needs to say so. */
export async function callerOrNull(workspace: Workspace): Promise<Actor | null> {
  try {
    return (await workspace.session("read")).actor;
  } catch (error) {
    if (error instanceof CotenantError && error.code === "E_AGENT_ID_REQUIRED") return null;
    throw error;
  }
}
