import type { Workspace } from "../coordinator/workspace";
import { CotenantError } from "../errors/cotenant-error";
import { prepareDataDirectory } from "../identity/worktree-file";
import { REGISTRY } from "../issues/gates/registry";
import { stageFile } from "../platform/replace-file";
import { changeForAll } from "./scope";

/** Changes the registry under `scope:gates`. `plan` reads it in the critical section; null where nothing changes. */
export async function changeRegistry(
  workspace: Workspace,
  plan: () => Promise<{ text: string; payload: Readonly<Record<string, unknown>> } | null>,
): Promise<boolean> {
  const { platform } = workspace.surroundings;
  const { worktreeRoot } = workspace.repository;
  return changeForAll(workspace, "gates", async () => {
    const wanted = await plan();
    if (wanted === null) return { answer: false, carryOut: null, payload: {} };
    const modes = await prepareDataDirectory(platform, worktreeRoot);
    const folder = `${worktreeRoot}/.cotenant/gates`;
    await platform.files.makeDirectory(folder, 0o755);
    for (const path of [folder, `${worktreeRoot}/${REGISTRY}`]) await refuseLink(workspace, path);
    const carryOut = await stageFile(platform, `${worktreeRoot}/${REGISTRY}`, wanted.text, modes.file);
    return { answer: true, carryOut, payload: { scope: "gates", ...wanted.payload } };
  });
}

/** A committed symbolic link must not decide where we write. */
async function refuseLink({ surroundings }: Workspace, path: string): Promise<void> {
  const stat = await surroundings.platform.files.lstat(path);
  if (stat === null || stat.kind === "directory" || stat.kind === "file") return;
  throw new CotenantError("E_PATH_ESCAPE", `${path} is a link, and nothing is written through it`, {
    hint: "put a real directory or file in its place",
    data: { path },
  });
}
