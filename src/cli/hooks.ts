import type { Workspace } from "../coordinator/workspace";
import { applyInstall, applyUninstall } from "../enforce/installing/apply";
import { CLIENT_HOOKS, type InstalledHook, SERVER_HOOKS } from "../enforce/installing/hooks";
import { lookAtHooks } from "../enforce/installing/look";
import { everyPlace, type HooksHome } from "../enforce/installing/place";
import { type InstallPlan, isObjection, planInstall } from "../enforce/installing/plan";
import { addToRecord, readRecord, removeRecord } from "../enforce/installing/record";
import { planUninstall, type UninstallPlan } from "../enforce/installing/unplan";
import { CotenantError } from "../errors/cotenant-error";
import { listWorktrees } from "../identity/worktree-list";
import { printable } from "../kernel/ids";
import type { Platform } from "../platform/platform";
import type { Context, Parsed } from "./command";

/** The repository whose hooks are meant: a clone, or with `--server` a bare one. */
export interface HooksDesk {
  readonly platform: Platform;
  readonly home: HooksHome;
  /** Null in a bare repository. */
  readonly workspace: Workspace | null;
  readonly names: readonly InstalledHook[];
}

export const SERVER = { server: { meaning: "a bare repository's hook, pre-receive" } };

export async function openHooks(context: Context, isServer: boolean): Promise<HooksDesk> {
  const bare = await bareRepository(context);
  if (isServer && bare === null)
    throw new CotenantError("E_USAGE", "--server is for a bare repository, which this is not", {
      hint: "change into the bare repository that others push to, or leave --server out",
    });
  if (bare === null) return deskOf(await context.workspace());
  if (!isServer)
    throw new CotenantError("E_NOT_A_REPO", `${bare} is a bare repository: nobody commits in it`, {
      hint: "add --server for the hook that checks what others push here",
      data: { git_dir: bare, bare: true },
    });
  const { platform, git, env } = context.surroundings();
  const { files } = platform;
  const home = { files, git, env, gitDir: bare, commonDir: bare, worktreeRoot: null, worktrees: [] };
  return { platform, home, workspace: null, names: SERVER_HOOKS };
}

/** A workspace needs a working tree; whoever finds none says which directory it found instead. */
async function bareRepository(context: Context): Promise<string | null> {
  try {
    await context.workspace();
    return null;
  } catch (error) {
    if (!(error instanceof CotenantError) || error.data["bare"] !== true) throw error;
    const { platform } = context.surroundings();
    return platform.files.realPath(error.data["git_dir"] as string);
  }
}

export async function deskOf(workspace: Workspace): Promise<HooksDesk> {
  const { surroundings, repository } = workspace;
  const { platform, git, env } = surroundings;
  const { gitDir, commonDir, worktreeRoot } = repository;
  const all = await listWorktrees(platform, git, repository);
  const worktrees = all
    .filter(({ exists }) => exists)
    .map(({ root, gitDir: own }) => ({ root, gitDir: own }));
  // A main worktree that Git does not record is one all the same.
  if (!worktrees.some(({ root }) => root === worktreeRoot)) worktrees.push({ root: worktreeRoot, gitDir });
  const home = { files: platform.files, git, env, gitDir, commonDir, worktreeRoot, worktrees };
  return { platform, home, workspace, names: CLIENT_HOOKS };
}

/** Looks, decides, and unless it is only to be shown, writes. */
export async function installHooks(
  context: Context,
  { platform, home, workspace, names }: HooksDesk,
  how: { readonly shared: boolean; readonly force: boolean; readonly isDry: boolean },
): Promise<{ plan: InstallPlan; directory: string }> {
  const scene = await lookAtHooks(home, names);
  const program = { node: process.execPath, program: context.program };
  const plan = planInstall(scene, { program, shared: how.shared, force: how.force });
  if (isObjection(plan)) {
    const { code, message, hint, path } = plan;
    throw new CotenantError(code, printable(message, 1_500), { hint, data: path === null ? {} : { path } });
  }
  const { directory } = scene.place;
  if (!how.isDry) {
    await applyInstall(platform, plan);
    if (workspace !== null) {
      const { store, repository } = workspace;
      await store.prepare();
      await addToRecord(platform, repository.controlDir, directory, store.options.modes.file);
    }
  }
  return { plan, directory };
}

/** Everywhere where hooks of this repository may be. */
export async function planRemoval(
  { platform, home, workspace, names }: HooksDesk,
  how: { readonly shared: boolean; readonly force: boolean },
): Promise<UninstallPlan[]> {
  const record = workspace === null ? null : await readRecord(platform, workspace.repository.controlDir);
  const plans: UninstallPlan[] = [];
  for (const place of await everyPlace(home, record?.directories ?? []))
    plans.push(planUninstall(await lookAtHooks(home, names, place), how));
  return plans.filter(({ removals, left }) => removals.length + left.length > 0);
}

export async function removeHooks(
  { platform, workspace }: HooksDesk,
  plans: readonly UninstallPlan[],
): Promise<void> {
  for (const plan of plans) await applyUninstall(platform, plan);
  if (workspace !== null) await removeRecord(platform, workspace.repository.controlDir);
}

export function howFrom(parsed: Parsed): { shared: boolean; force: boolean } {
  return { shared: parsed.has("shared"), force: parsed.has("force") };
}
