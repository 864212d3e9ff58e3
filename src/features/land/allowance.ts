import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { isAmong } from "../../kernel/policy";

/** `policy.land`: who moves a protected branch, or keeps others from it. */
export function requireLander(
  { config }: Pick<Workspace, "config">,
  { actor }: Session,
  verb: string,
  instead = `a person runs 'cotenant land ${verb}' in a terminal, and the entries stay in the queue until then`,
): void {
  const allowed = config.values["policy.land"];
  if (isAmong(allowed, actor.agentId)) return;
  throw new CotenantError("E_POLICY", `${actor.agentId} may not ${verb} the merge queue`, {
    hint: `only ${allowed.join(", ") || "nobody"} may (policy.land); ${instead}`,
    data: { agent_id: actor.agentId, allowed, setting: "policy.land" },
  });
}
