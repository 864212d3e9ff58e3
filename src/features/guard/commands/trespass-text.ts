import type { Workspace } from "../../../coordinator/workspace";
import type { Looking, Trespass } from "../trespasses";

export function lookingAt({ surroundings, repository, coordinator }: Workspace): Looking {
  const { platform, git } = surroundings;
  return { platform, git, repository, coordinator };
}

export function trespassJson({ id, violation }: Trespass): Record<string, unknown> {
  const { path, agentId, owner, leaseId, at, command } = violation;
  return { id, path, agent_id: agentId, owner, lease_id: leaseId, at, command };
}
