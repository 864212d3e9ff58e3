import { type ConfigKey, type ConfigValue, isConfigKey } from "../../config/schema";
import { digestOf, subjectOf, type Trust, type Trusted } from "../../config/trust";
import { tomlOf } from "../../config/values";
import { addTrusted, mayTrust } from "../../coordinator/trusting";
import type { Workspace } from "../../coordinator/workspace";
import { type GateDefinition, inspectRegistry } from "../gates/registry";
import { trustGates, waitingGates } from "../gates/trust";
import type { Surveyed } from "./settings";

/** Trusts what the repository's file says of these keys now. Empty when the caller may not. */
export async function trustKeys(
  workspace: Workspace,
  { config }: Surveyed,
  keys: readonly ConfigKey[],
): Promise<readonly Trusted[]> {
  if (!(await mayTrust(workspace))) return [];
  const wanted = config.untrusted.filter(({ key }) => keys.includes(key));
  return addTrust(workspace, wanted, (await workspace.agent()).agentId);
}

export async function addTrust(
  workspace: Workspace,
  wanted: readonly { readonly key: ConfigKey; readonly value: ConfigValue }[],
  trustedBy: string,
): Promise<readonly Trusted[]> {
  const { digest } = workspace.surroundings.platform;
  const subjects = wanted.map(({ key, value }) => ({
    subject: subjectOf(key),
    digest: digestOf(digest, value),
  }));
  return addTrusted(workspace, subjects, trustedBy);
}

/** A registry that cannot be read names no command. */
export async function gatesWithoutTrust(
  workspace: Workspace,
  trust: Trust,
): Promise<readonly GateDefinition[]> {
  const { platform } = workspace.surroundings;
  const reading = await inspectRegistry(platform, workspace.repository.worktreeRoot);
  if ("registry" in reading) return waitingGates(platform.digest, trust, reading.registry.gates.values());
  workspace.warnings.push(`the gates cannot be read: ${reading.broken}`);
  return [];
}

/** Trusts all that waits, as it is now. */
export async function trustAll(
  workspace: Workspace,
  surveyed: Surveyed,
  gates: readonly GateDefinition[],
): Promise<readonly Trusted[]> {
  const keys = surveyed.config.untrusted.map(({ key }) => key);
  return [...(await trustKeys(workspace, surveyed, keys)), ...(await trustGates(workspace, gates))];
}

/** Trust keeps no values, only their sums: what is shown is what the file says now, if that is what was trusted. */
export function trustedValue({ config, platform }: Surveyed, { subject, digest }: Trusted): string {
  const key = subject.replace(/^config:/, "");
  if (key === subject || !isConfigKey(key)) return "";
  const said = config.layers.find(({ source }) => source === "worktree")?.entries.get(key);
  if (said !== undefined && digestOf(platform.digest, said.value) === digest) return tomlOf(said.value);
  return "(not what the file says now)";
}
