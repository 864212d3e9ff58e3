import type { ConfigKey, ConfigValue } from "../../../config/schema";
import { digestOf, subjectOf, type Trusted } from "../../../config/trust";
import { addTrusted, mayTrust } from "../../../coordinator/trusting";
import type { Workspace } from "../../../coordinator/workspace";
import type { Surveyed } from "./configuring";

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
