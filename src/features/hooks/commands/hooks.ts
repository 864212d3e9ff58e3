import type { Context, Parsed } from "../../../cli/grammar/command";
import { refuseRuledFiles } from "../../../coordinator/path-rules";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import { evenIfOvertaken } from "../../../errors/overtaken";
import type { Repository } from "../../../identity/repository";
import { isObjection, type Objection, unlessObjected } from "../../installer/files";
import { CLIENT_HOOKS, SERVER_HOOKS } from "../installation/block";
import {
  carryOut,
  type HooksControl,
  type HooksWork,
  planHooks,
  planRemoval,
  type Removals,
} from "../installation/install";
import { hooksHome } from "../installation/place";
import type { InstallPlan } from "../installation/plan";

/** The repository whose hooks are meant: a clone, or with `--server` a bare one. */
export interface HooksDesk extends HooksWork {
  /** Null in a bare repository. */
  readonly workspace: Workspace | null;
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
  return { platform, home, workspace: null, names: SERVER_HOOKS, control: null };
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
  const { surroundings, repository, store } = workspace;
  const home = await hooksHome(surroundings, repository);
  const control = controlOf(repository, store.options.modes);
  return { platform: surroundings.platform, home, workspace, names: CLIENT_HOOKS, control };
}

export function controlOf(
  { controlDir, gitDir, commonDir }: Repository,
  modes: HooksControl["modes"],
): HooksControl {
  return { controlDir, gitDir, commonDir, modes };
}

/** Looks, decides, and unless it is only to be shown, writes. */
export async function installHooks(
  context: Context,
  desk: HooksDesk,
  how: { readonly shared: boolean; readonly force: boolean; readonly isDry: boolean },
): Promise<{ plan: InstallPlan; directory: string }> {
  const program = { node: process.execPath, program: context.program };
  const wishes = { program, shared: how.shared, force: how.force };
  return evenIfOvertaken(async () => {
    // With --shared, planning takes out what is there for this clone alone.
    if (how.shared && !how.isDry) await refuseRuledHooks(desk, (await planHooks(desk, wishes, true)).plan);
    const { scene, plan: decided } = await planHooks(desk, wishes, how.isDry);
    const plan = unlessObjected(decided);
    if (!how.isDry) {
      await desk.workspace?.store.prepare();
      await carryOut(desk, scene, plan, program);
    }
    return { plan, directory: scene.place.directory };
  });
}

async function refuseRuledHooks({ workspace }: HooksDesk, plan: InstallPlan | Objection): Promise<void> {
  if (workspace === null || isObjection(plan)) return;
  const all = [...plan.hooks, ...(plan.entry === null ? [] : [plan.entry])];
  const written = all.filter(({ isShared, write }) => isShared && write !== null);
  await refuseRuledFiles(
    workspace,
    written.map(({ path }) => path),
  );
}

/** Those that stay without --shared are among the project's files. */
export async function refuseRuledRemoval(desk: HooksDesk, { removals }: Removals): Promise<void> {
  if (desk.workspace === null) return;
  const local = await planRemoval(desk, { shared: false, force: true });
  const paths = removals.map(({ path }) => path);
  await refuseRuledFiles(
    desk.workspace,
    paths.filter((path) => !local.removals.some((removal) => removal.path === path)),
  );
}

export function howFrom(parsed: Parsed): { shared: boolean; force: boolean } {
  return { shared: parsed.has("shared"), force: parsed.has("force") };
}
