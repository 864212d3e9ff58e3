import { applyInstall, applyUninstall, type Desk } from "../agents/apply";
import { lookAt, type Standing, standingsOf } from "../agents/look";
import { type Found, isObjection, planInstall, type SitePlan } from "../agents/plan";
import { allRecords, type FileRecord, readRecord, type Shelf } from "../agents/record";
import { type Grounds, type Level, sitesOf } from "../agents/sites";
import { type SiteState, stateOf } from "../agents/state";
import { planUninstall, type Removals } from "../agents/unplan";
import { nearest } from "../config/nearest";
import { refuseRuledFiles } from "../coordinator/path-rules";
import type { Surroundings, Workspace } from "../coordinator/workspace";
import { CotenantError } from "../errors/cotenant-error";
import { evenIfOvertaken } from "../errors/overtaken";
import { isInitialised } from "../guard/place";
import { HARNESS_NAMES, type HarnessName } from "../identity/harness";
import { printable } from "../kernel/ids";
import type { Context, Flag, Parsed } from "./command";

export const WHERE: Readonly<Record<string, Flag>> = {
  all: { meaning: "every harness" },
  user: { meaning: "in your own settings, for all your projects" },
  shared: { meaning: "in settings that are committed, for everybody" },
};

/** One level of settings, with all that is needed to change them. */
export interface AgentsDesk extends Desk {
  readonly level: Level;
  readonly surroundings: Surroundings;
  readonly grounds: Grounds;
  readonly workspace: Workspace | null;
}

const PRIVATE = { file: 0o600, directory: 0o700 };

/** The settings of this worktree. */
export function projectDesk(workspace: Workspace): AgentsDesk {
  const { surroundings, repository, store } = workspace;
  const { platform, home, env } = surroundings;
  const { worktreeRoot: root, commonDir, controlDir } = repository;
  return {
    level: "project",
    surroundings,
    platform,
    workspace,
    grounds: { root, home, env },
    shelf: { directory: `${controlDir}/agents`, modes: store.options.modes },
    clone: { root, commonDir },
  };
}

/** The user's own. Works outside of any repository. */
export function userDesk(surroundings: Surroundings): AgentsDesk | null {
  const { platform, home, env } = surroundings;
  const data = env["XDG_DATA_HOME"]?.startsWith("/") ? env["XDG_DATA_HOME"] : home && `${home}/.local/share`;
  if (!data) return null;
  const shelf: Shelf = { directory: `${data}/cotenant/agents`, modes: PRIVATE };
  const grounds = { root: null, home, env };
  return { level: "user", surroundings, platform, workspace: null, grounds, shelf, clone: null };
}

export async function deskFor(context: Context, parsed: Parsed): Promise<AgentsDesk> {
  if (!parsed.has("user")) return projectDesk(await context.workspace());
  if (parsed.has("shared"))
    throw new CotenantError("E_USAGE", "--user and --shared contradict each other", {
      hint: "--user is for you in all projects, --shared for everybody in this one",
    });
  const desk = userDesk(context.surroundings());
  if (desk !== null) return desk;
  throw new CotenantError("E_USAGE", "--user needs a home directory, and there is none", {
    hint: "set HOME, or install in the project without --user",
  });
}

export function harnessesFrom(parsed: Parsed): readonly HarnessName[] {
  const { words } = parsed;
  if (parsed.has("all")) {
    if (words.length === 0) return HARNESS_NAMES;
    throw new CotenantError("E_USAGE", "--all names every harness already", {
      hint: `leave out --all, or "${printable(words.join(" "), 100)}"`,
    });
  }
  if (words.length === 0)
    throw new CotenantError("E_USAGE", "which harness?", {
      hint: `name one or more of ${HARNESS_NAMES.join(", ")}, or give --all`,
    });
  return [...new Set(words.map(harnessNamed))];
}

/** Those that were named, or every one. */
export function harnessesOrAll({ words }: Parsed): readonly HarnessName[] {
  return words.length === 0 ? HARNESS_NAMES : [...new Set(words.map(harnessNamed))];
}

export function harnessNamed(word: string): HarnessName {
  const found = HARNESS_NAMES.find((name) => name === word.toLowerCase());
  if (found !== undefined) return found;
  const near = nearest(word.toLowerCase(), [...HARNESS_NAMES]);
  throw new CotenantError("E_USAGE", `there is no harness "${printable(word, 60)}"`, {
    hint: `${near === null ? "" : `did you mean ${near}? `}use one of ${HARNESS_NAMES.join(", ")}`,
  });
}

/** Everything that harnesses may have at that level. */
export async function findIn(desk: AgentsDesk, ...harnesses: readonly HarnessName[]): Promise<Found[]> {
  const { platform, grounds, shelf, workspace, surroundings } = desk;
  const looked: Omit<Found, "standing">[] = [];
  for (const site of harnesses.flatMap((harness) => sitesOf(harness, desk.level, grounds)))
    looked.push({
      site,
      file: await lookAt(platform.files, site, grounds.root),
      record: await readRecord(platform, shelf, site.path),
    });
  const known = looked.filter(({ file }) => file.why === null).map(({ file }) => file.path);
  // Git is asked once, for all of them.
  const standings =
    workspace === null
      ? new Map<string, Standing>()
      : await standingsOf(surroundings.git, placeOf(workspace), known);
  return looked.map((one) => ({ ...one, standing: standings.get(one.file.path) ?? null }));
}

function placeOf({ repository }: Workspace): { root: string; gitDir: string } {
  return { root: repository.worktreeRoot, gitDir: repository.gitDir };
}

/** Looks and decides for all of them before anything is written: an objection against one is one against all. */
export async function planAgents(
  context: Context,
  desk: AgentsDesk,
  harnesses: readonly HarnessName[],
  shared: boolean,
): Promise<SitePlan[]> {
  const { digest } = desk.platform;
  const program = { node: process.execPath, program: context.program };
  const plans: SitePlan[] = [];
  const all = await findIn(desk, ...harnesses);
  for (const harness of harnesses) {
    const found = all.filter(({ site }) => site.harness === harness);
    const plan = planInstall(found, { program, shared, digestOf: (text) => digest.sha256(text) });
    if (isObjection(plan)) {
      const { code, message, hint, path } = plan;
      throw new CotenantError(code, printable(message, 1_500), { hint, data: { path, harness } });
    }
    plans.push(plan);
  }
  return plans;
}

export async function installAgents(
  context: Context,
  desk: AgentsDesk,
  harnesses: readonly HarnessName[],
  shared: boolean,
): Promise<SitePlan[]> {
  return evenIfOvertaken(async () => {
    const plans = await planAgents(context, desk, harnesses, shared);
    if (desk.workspace !== null) {
      const shared = plans.filter(({ isShared, after }) => isShared && after !== null);
      await refuseRuledFiles(
        desk.workspace,
        shared.map(({ file }) => file.path),
      );
      await desk.workspace.store.prepare();
    }
    await applyInstall(desk, plans);
    return plans;
  });
}

export async function planAgentRemoval(
  desk: AgentsDesk,
  harnesses: readonly HarnessName[],
  shared: boolean,
): Promise<Removals & { readonly others: readonly FileRecord[] }> {
  const { digest } = desk.platform;
  const others = await allRecords(desk.platform, desk.shelf);
  const found = await findIn(desk, ...harnesses);
  const plan = planUninstall(found, { shared, digestOf: (text) => digest.sha256(text) });
  return { ...plan, others };
}

/** What Git passes over is nobody's work. */
export async function refuseRuledRemovals(
  { workspace }: AgentsDesk,
  { removals }: Pick<Removals, "removals">,
): Promise<void> {
  const seen = removals.filter(({ found }) => found.standing !== "ignored");
  if (workspace !== null)
    await refuseRuledFiles(
      workspace,
      seen.map(({ found }) => found.file.path),
    );
}

export async function removeAgents(
  desk: AgentsDesk,
  plan: Awaited<ReturnType<typeof planAgentRemoval>>,
): Promise<void> {
  const gone = new Set(
    [...plan.removals.map(({ found }) => found), ...plan.absent].map(({ site }) => site.path),
  );
  const kept = plan.others.filter(({ path, isShared }) => !gone.has(path) && !isShared);
  // The list is one for all worktrees, and another one may still need the name.
  const isStillHidden = (name: string) => kept.some(({ path }) => path.endsWith(`/${name}`));
  await applyUninstall(desk, plan, isStillHidden);
}

/** One file, and how it stands. */
export interface Seen {
  readonly found: Found;
  readonly state: SiteState;
  /** False when our lines name a program that is gone. */
  readonly isProgramThere: boolean;
}

/** Whoever wrote into a file of ours has to look after it, whatever it starts. */
export function stateSeen({ state: { state }, isProgramThere }: Seen): SiteState["state"] {
  return isProgramThere || state === "changed" ? state : "outdated";
}

/** Every file of these harnesses, of this worktree if there is one, and of the user. */
export async function lookAround(context: Context, harnesses: readonly HarnessName[]) {
  const surroundings = context.surroundings();
  const { platform, home, env } = surroundings;
  const workspace = await workspaceOrNull(context);
  const desks = [workspace === null ? null : projectDesk(workspace), userDesk(surroundings)];
  const seen: Seen[] = [];
  for (const desk of desks) {
    if (desk === null) continue;
    for (const found of await findIn(desk, ...harnesses)) {
      const state = stateOf(found, (text) => platform.digest.sha256(text));
      const named = state.program === null ? [] : [state.program.node, state.program.program];
      const stats = await Promise.all(named.map((path) => platform.files.stat(path)));
      seen.push({ found, state, isProgramThere: stats.every((stat) => stat !== null) });
    }
  }
  const grounds = { root: workspace?.repository.worktreeRoot ?? null, home, env };
  return { seen, grounds, platform, workspace, surroundings };
}

/** What has to be done besides for the guard to do anything at all, where these settings count. */
export async function setUpRemarks(
  context: Context,
  { level }: Pick<AgentsDesk, "level">,
  isShared: boolean,
): Promise<string[]> {
  const workspace = await workspaceOrNull(context);
  if (level === "user") {
    const isHere = workspace !== null && !(await isInitialised(workspace.surroundings, workspace.repository));
    return [
      `the guard lets everything pass in repositories without 'cotenant init'${isHere ? ", as in this one" : ""}`,
    ];
  }
  if (!isShared || workspace === null) return [];
  const { files } = workspace.surroundings.platform;
  return (await files.stat(`${workspace.repository.worktreeRoot}/.cotenant/config.toml`)) === null
    ? ["in other clones the guard lets everything pass: run 'cotenant init', and commit .cotenant/ as well"]
    : [];
}

async function workspaceOrNull(context: Context): Promise<Workspace | null> {
  try {
    return await context.workspace();
  } catch (error) {
    if (error instanceof CotenantError && error.code === "E_NOT_A_REPO") return null;
    throw error;
  }
}
