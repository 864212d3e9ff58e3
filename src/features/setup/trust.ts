import type { Config } from "../../config/load";
import { type ConfigKey, type ConfigValue, isConfigKey } from "../../config/schema";
import { digestOf, subjectOf, type Trust, type Trusted } from "../../config/trust";
import { tomlOf } from "../../config/values";
import { addTrusted, mayTrust, revokeTrust } from "../../coordinator/trust-changes";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { type GateDefinition, inspectRegistry } from "../gates/registry";
import { trustGates, waitingGates } from "../gates/trust";
import { type Surveyed, survey } from "./settings";

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
async function gatesWithoutTrust(workspace: Workspace, trust: Trust): Promise<readonly GateDefinition[]> {
  const { platform } = workspace.surroundings;
  const reading = await inspectRegistry(platform, workspace.repository.worktreeRoot);
  if ("registry" in reading) return waitingGates(platform.digest, trust, reading.registry.gates.values());
  workspace.warnings.push(`the gates cannot be read: ${reading.broken}`);
  return [];
}

/** Trusts all that waits, as it is now. */
async function trustAll(
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

export interface TrustRequest {
  /** `list`: changes nothing. `revoke`: trusts nothing any more. Default: trusts all that waits, as it is now. */
  readonly action?: "list" | "revoke" | undefined;
}

export interface TrustAnswer {
  /** Settings and gates as they were before. */
  readonly surveyed: Surveyed;
  readonly gates: readonly GateDefinition[];
  /** What was newly trusted, or is trusted no longer. */
  readonly changed: readonly Trusted[];
}

/** What this clone allows of what its committed files loosen, and of the commands that they name. */
export async function trust(workspace: Workspace, { action }: TrustRequest = {}): Promise<TrustAnswer> {
  const surveyed = await survey(workspace.surroundings);
  const gates = await gatesWithoutTrust(workspace, surveyed.trust);
  if (action === "list") return { surveyed, gates, changed: [] };
  // It answers the warning, so it need not be repeated.
  workspace.warnings.length = 0;
  if (!(await mayTrust(workspace)))
    throw new CotenantError("E_POLICY", "an agent cannot decide what this clone trusts", {
      hint: "a person runs 'cotenant trust' in a terminal, after 'cotenant trust --list'",
      data: { waiting: untrustedIn(surveyed.config), waiting_gates: gates.map(gateIn) },
    });
  const changed =
    action === "revoke" ? await revokeTrust(workspace) : await trustAll(workspace, surveyed, gates);
  return { surveyed, gates, changed };
}

/** Values that wait for trust, as answers have them. */
export function untrustedIn({ untrusted }: Pick<Config, "untrusted">) {
  return untrusted.map(({ key, value, instead, place, line }) => ({ key, value, instead, place, line }));
}

export function gateIn({ key, command, cwd }: GateDefinition) {
  return { key, command, cwd };
}
