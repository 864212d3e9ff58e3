import { isConfigKey } from "../config/schema";
import { CotenantError } from "../errors/cotenant-error";
import { explainSandbox } from "../identity/sandbox";
import type { Workspace } from "./workspace";

/** A refusal with what is known of it here: the sandbox it comes from, proposals that are open, where its setting was made. */
export async function explained(error: unknown, workspace: Workspace): Promise<unknown> {
  const { surroundings, repository } = workspace;
  return namingSource(
    await namingProposals(await explainSandbox(error, surroundings, repository), workspace),
    workspace,
  );
}

/** Others have to agree to it, and somebody may have asked them already. */
async function namingProposals(error: unknown, workspace: Workspace): Promise<unknown> {
  if (!(error instanceof CotenantError) || error.code !== "E_APPROVAL_NEEDED") return error;
  const { namingProposal } = await import("./proposals");
  return namingProposal(error, workspace.coordinator, (await workspace.agent()).agentId);
}

/** A refusal by a setting says where that was set: the person may not know of the file. */
function namingSource(error: unknown, { config }: Workspace): unknown {
  const setting = error instanceof CotenantError ? error.data["setting"] : undefined;
  if (!(error instanceof CotenantError) || typeof setting !== "string" || !isConfigKey(setting)) return error;
  const { source, place, line } = config.origin(setting);
  const where = line === null ? place : `${place}:${line}`;
  const origin = source === "default" ? `${setting} is at its default` : `${setting} is set in ${where}`;
  // With the message: what follows "next:" is to be run as it is.
  return new CotenantError(error.code, `${error.message} (${origin})`, {
    hint: error.hint,
    data: { ...error.data, ruled_by: { source, place, line } },
    cause: error,
  });
}
