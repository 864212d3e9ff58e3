import type { Workspace } from "../../../coordinator/workspace";
import { prepareDataDirectory, refuseLink } from "../../../identity/worktree-file";
import { stageFile } from "../../../platform/replace-file";
import { changeForAll } from "../../setup/shared-change";
import { REGISTRY } from "../registry";

/** Changes the registry under `scope:gates`. `plan` reads it in the critical section; null where nothing changes. */
export async function changeRegistry(
  workspace: Workspace,
  plan: () => Promise<{ text: string; payload: Readonly<Record<string, unknown>> } | null>,
): Promise<boolean> {
  const { platform } = workspace.surroundings;
  const { worktreeRoot } = workspace.repository;
  return changeForAll(workspace, "gates", async () => {
    const wanted = await plan();
    if (wanted === null) return { answer: false, stage: null, payload: {} };
    const modes = await prepareDataDirectory(platform, worktreeRoot);
    const folder = `${worktreeRoot}/.cotenant/gates`;
    await platform.files.makeDirectory(folder, 0o755);
    await refuseLink(platform, folder, "directory");
    await refuseLink(platform, `${worktreeRoot}/${REGISTRY}`, "file");
    const stage = () => stageFile(platform, `${worktreeRoot}/${REGISTRY}`, wanted.text, modes.file);
    return { answer: true, stage, payload: { scope: "gates", ...wanted.payload } };
  });
}
