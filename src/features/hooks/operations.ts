/** Git's hooks: what they check, how they get into a repository and out again, and how they stand. See docs/HOOKS.md. */
import { refuseRuledFiles } from "../../coordinator/path-rules";
import type { Whereabouts, Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { evenIfOvertaken } from "../../errors/overtaken";
import { printable } from "../../kernel/ids";
import { type Installed, isObjection, type Objection, unlessObjected } from "../installer/files";
import { CANARY, CLIENT_HOOKS, SERVER_HOOKS } from "./installation/block";
import {
  carryOut,
  type HooksWork,
  planHooks,
  planRemoval,
  type Removals,
  removeHooks,
} from "./installation/install";
import { type HookState, type HooksSurvey, lookAtHooks, statesOf } from "./installation/look";
import { everyPlace, type HooksPath, hooksHome } from "./installation/place";
import { howToInstall, type InstallPlan } from "./installation/plan";
import { readRecord } from "./installation/record";
import { serverProblem, serverRemarks } from "./server";

export { MEANINGS } from "./installation/block";
export { planRemoval, type Removals, removeHooks } from "./installation/install";
export type { EntryPlan, HookPlan } from "./installation/plan";
export type { Removal } from "./installation/removal";

/** The repository whose hooks are meant: a clone, or a bare one that others push to. */
export interface OpenHooks extends HooksWork {
  /** Null in a bare repository. */
  readonly workspace: Workspace | null;
}

/** The hooks of the clone around somebody, or of a server's bare repository. */
export async function openHooks(where: Whereabouts, isServer: boolean): Promise<OpenHooks> {
  const bare = await bareRepository(where);
  if (isServer && bare === null)
    throw new CotenantError("E_USAGE", "--server is for a bare repository, which this is not", {
      hint: "change into the bare repository that others push to, or leave --server out",
    });
  if (bare === null) return hooksOf(await where.workspace());
  if (!isServer)
    throw new CotenantError("E_NOT_A_REPO", `${bare} is a bare repository: nobody commits in it`, {
      hint: "add --server for the hook that checks what others push here",
      data: { git_dir: bare, bare: true },
    });
  const { platform, git, env } = where.surroundings();
  const { files } = platform;
  const home = { files, git, env, gitDir: bare, commonDir: bare, worktreeRoot: null, worktrees: [] };
  return { platform, home, workspace: null, names: SERVER_HOOKS, control: null };
}

/** A workspace needs a working tree; whoever finds none says which directory it found instead. */
async function bareRepository({ workspace, surroundings }: Whereabouts): Promise<string | null> {
  try {
    await workspace();
    return null;
  } catch (error) {
    if (!(error instanceof CotenantError) || error.data["bare"] !== true) throw error;
    return surroundings().platform.files.realPath(error.data["git_dir"] as string);
  }
}

export async function hooksOf(workspace: Workspace): Promise<OpenHooks> {
  const { surroundings, repository, store } = workspace;
  const home = await hooksHome(surroundings, repository);
  const control = { ...repository, modes: store.options.modes };
  return { platform: surroundings.platform, home, workspace, names: CLIENT_HOOKS, control };
}

export interface HooksRequest {
  /** Files that are committed may be changed. */
  readonly shared: boolean;
  /** So may a directory that other repositories use. */
  readonly force: boolean;
}

export interface HooksInstallation {
  readonly plan: InstallPlan;
  readonly directory: string;
  /** What people should know. */
  readonly remarks: readonly string[];
}

/** Looks, decides, and unless it is only to be shown, writes. */
export async function installHooks(
  at: OpenHooks,
  { program, shared, force, isDry }: HooksRequest & { readonly program: Installed; readonly isDry: boolean },
): Promise<HooksInstallation> {
  const wishes = { program, shared, force };
  const installed = await evenIfOvertaken(async () => {
    // With --shared, planning takes out what is there for this clone alone.
    if (shared && !isDry) await refuseRuledHooks(at, (await planHooks(at, wishes, true)).plan);
    const { scene, plan: decided } = await planHooks(at, wishes, isDry);
    const plan = unlessObjected(decided);
    if (!isDry) {
      await at.workspace?.store.prepare();
      await carryOut(at, scene, plan, program);
    }
    return { plan, directory: scene.place.directory };
  });
  const { git, gitDir } = at.home;
  const about = at.workspace === null ? await serverRemarks(git, bareAt(gitDir)) : [];
  return { ...installed, remarks: [...installed.plan.remarks, ...about] };
}

function bareAt(gitDir: string) {
  return { cwd: gitDir, env: { GIT_DIR: gitDir } };
}

async function refuseRuledHooks({ workspace }: OpenHooks, plan: InstallPlan | Objection): Promise<void> {
  if (workspace === null || isObjection(plan)) return;
  const written = [...plan.hooks, ...(plan.entry === null ? [] : [plan.entry])].filter(
    ({ isShared, write }) => isShared && write !== null,
  );
  await refuseRuledFiles(
    workspace,
    written.map(({ path }) => path),
  );
}

export async function uninstallHooks(at: OpenHooks, request: HooksRequest): Promise<Removals> {
  const plans = await planRemoval(at, request);
  if (request.shared) await refuseRuledRemoval(at, plans);
  await removeHooks(at, plans);
  return plans;
}

/** Those that stay without --shared are among the project's files. */
async function refuseRuledRemoval(at: OpenHooks, { removals }: Removals): Promise<void> {
  if (at.workspace === null) return;
  const local = await planRemoval(at, { shared: false, force: true });
  const paths = removals.map(({ path }) => path);
  await refuseRuledFiles(
    at.workspace,
    paths.filter((path) => !local.removals.some((removal) => removal.path === path)),
  );
}

/** How a hook stands, and what came of starting it. */
export interface HookReport extends HookState {
  readonly isShared: boolean;
  /** False where our lines name no program, or one that is gone. */
  readonly isProgramThere: boolean;
  readonly outcome: "passed" | "failed" | null;
}

export interface HooksStatus {
  readonly directory: string;
  readonly setting: HooksPath | null;
  readonly whose: HooksSurvey["place"]["whose"];
  readonly isWanted: boolean;
  readonly hooks: readonly HookReport[];
  /** Ours in directories that Git does not use, or no longer. */
  readonly hidden: readonly string[];
  /** Why a server cannot judge pushes. */
  readonly problem: { readonly code: string; readonly message: string; readonly hint: string } | null;
  /** A command; null where nothing is to be done. */
  readonly next: string | null;
}

/** Starts a hook with these words, by itself or by a shell: what it prints, null where it fails. */
export type StartHook = (
  path: string,
  how: { readonly by: "itself" | "shell"; readonly args: readonly string[]; readonly cwd: string },
) => Promise<string | null>;

/** With `start`, each hook is tried: run up to our first lines, which say whether they find the program, and end there. */
export async function hooksStatus(
  at: OpenHooks,
  { program, start }: { readonly program: Installed; readonly start: StartHook | null },
): Promise<HooksStatus> {
  const { home, names, workspace } = at;
  const scene = await lookAtHooks(home, names);
  const report = async (found: HookState): Promise<HookReport> => {
    const named = found.program === null ? [] : [found.program.node, found.program.program];
    const stats = await Promise.all(named.map((path) => home.files.stat(path)));
    const isProgramThere = found.program !== null && stats.every((stat) => stat !== null);
    const isGone = found.program !== null && !isProgramThere;
    const state = found.state === "installed" && isGone ? "outdated" : found.state;
    const { path, trial } = found;
    let outcome: HookReport["outcome"] = null;
    if (start !== null && trial !== null && found.isExecutable) {
      const said = await start(path, { by: trial, args: [CANARY], cwd: home.worktreeRoot ?? home.gitDir });
      outcome = said?.startsWith("cotenant ") === true ? "passed" : "failed";
    }
    return { ...found, state, isShared: scene.versioned.has(path), isProgramThere, outcome };
  };
  const hooks = await Promise.all(statesOf(scene).map(report));
  const { directory, setting, whose } = scene.place;
  const { git, gitDir } = home;
  const found = workspace === null ? await serverProblem(git, bareAt(gitDir)) : null;
  const problem =
    found === null ? null : { code: found.code, message: printable(found.message, 400), hint: found.hint };
  const isFine = hooks.every(
    (one) => one.state === "installed" && one.isExecutable && one.outcome !== "failed",
  );
  const howTo = () => (workspace === null ? "cotenant hooks install --server" : howToInstall(scene, program));
  const next = isFine ? null : howTo();
  return { directory, setting, whose, ...(await elsewhere(at, scene)), hooks, problem, next };
}

async function elsewhere({ platform, home, names, workspace }: OpenHooks, { place }: HooksSurvey) {
  const record = workspace === null ? null : await readRecord(platform, workspace.repository.controlDir);
  const hidden: string[] = [];
  for (const other of await everyPlace(home, record?.directories ?? [])) {
    if (other.directory === place.directory || other.setting !== null) continue;
    for (const { state, isByHand, path } of statesOf(await lookAtHooks(home, names, other)))
      if ((state === "installed" || state === "outdated") && !isByHand) hidden.push(path);
  }
  return { hidden, isWanted: record !== null };
}
