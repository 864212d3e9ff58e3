import type { Workspace } from "../../coordinator/workspace";
import { makeCaches } from "./cache-directories";

export interface ExecEnvironment {
  readonly agentId: string;
  /** Where the caches are. */
  readonly place: string;
  readonly variables: Readonly<Record<string, string>>;
}

/** Makes caches of the caller's own in this worktree; a command that is run with these variables uses them. */
export async function exec(workspace: Workspace): Promise<ExecEnvironment> {
  const { agentId } = await workspace.agent();
  const { surroundings, repository } = workspace;
  const { platform, env } = surroundings;
  const { place, variables } = await makeCaches(platform, repository.worktreeRoot, agentId, env);
  return { agentId, place, variables: { ...variables, COTENANT_AGENT_ID: agentId } };
}
