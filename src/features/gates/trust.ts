import { type Trust, type Trusted, trusts } from "../../config/trust";
import { addTrusted, mayTrust } from "../../coordinator/trust-changes";
import type { Workspace } from "../../coordinator/workspace";
import type { Digest } from "../../platform/platform";
import type { GateDefinition } from "./registry";

/** What a clone has to trust of a gate: the command, and where it runs. A title may change without asking again. */
export function gateTrust(
  digest: Digest,
  { key, command, cwd }: GateDefinition,
): { readonly subject: string; readonly digest: string } {
  return { subject: `gate:${key}`, digest: digest.sha256(JSON.stringify({ command, cwd })) };
}

/** Null for a gate that runs nothing. */
export function isTrusted(digest: Digest, trust: Trust, gate: GateDefinition): boolean | null {
  if (gate.command === null) return null;
  const wanted = gateTrust(digest, gate);
  return trusts(trust, wanted.subject, wanted.digest);
}

/** Gates with a command that nobody of this clone has allowed. */
export function waitingGates(
  digest: Digest,
  trust: Trust,
  gates: Iterable<GateDefinition>,
): GateDefinition[] {
  return [...gates].filter((gate) => isTrusted(digest, trust, gate) === false);
}

/** Trusts the commands that these gates run now. Empty when the caller may not. */
export async function trustGates(
  workspace: Workspace,
  gates: readonly GateDefinition[],
): Promise<readonly Trusted[]> {
  if (gates.length === 0 || !(await mayTrust(workspace))) return [];
  const { digest } = workspace.surroundings.platform;
  const { agentId } = await workspace.agent();
  const wanted = gates.map((gate) => gateTrust(digest, gate));
  return addTrusted(workspace, wanted, agentId);
}
