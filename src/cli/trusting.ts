import type { ConfigKey, ConfigValue } from "../config/schema";
import { digestOf, readTrust, subjectOf, type Trusted, writeTrust } from "../config/trust";
import type { Workspace } from "../coordinator/workspace";
import type { GateDefinition } from "../issues/gates/registry";
import { gateTrust } from "../issues/gates/trust";
import { agentType } from "../kernel/ids";
import type { Surveyed } from "./configuring";

/** Trust is a person's to give, or a machine's that persons set up; an agent could be talked into it. */
export async function mayTrust(workspace: Workspace): Promise<boolean> {
  return agentType((await workspace.agent()).agentId) !== "agent";
}

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

/** Trusts the commands that these gates run now. Empty when the caller may not. */
export async function trustGates(
  workspace: Workspace,
  gates: readonly GateDefinition[],
): Promise<readonly Trusted[]> {
  if (gates.length === 0 || !(await mayTrust(workspace))) return [];
  const { digest } = workspace.surroundings.platform;
  const { agentId } = await workspace.agent();
  return addTrusted(
    workspace,
    gates.map((gate) => gateTrust(digest, gate)),
    agentId,
  );
}

async function addTrusted(
  workspace: Workspace,
  wanted: readonly Pick<Trusted, "subject" | "digest">[],
  trustedBy: string,
): Promise<readonly Trusted[]> {
  const { platform } = workspace.surroundings;
  const { controlDir } = workspace.repository;
  const trustedAt = new Date(platform.clock.wallMs()).toISOString();
  const { entries } = await readTrust(platform, controlDir);
  const added = wanted
    .filter(({ subject, digest }) => !entries.some((e) => e.subject === subject && e.digest === digest))
    .map((entry) => ({ ...entry, trustedAt, trustedBy }));
  if (added.length === 0) return [];
  await workspace.store.prepare();
  await writeTrust(platform, controlDir, [...entries, ...added]);
  return added;
}
