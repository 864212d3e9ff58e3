import { refuseRuledFiles } from "../../coordinator/path-rules";
import type { Surroundings, Workspace } from "../../coordinator/workspace";
import { evenIfOvertaken } from "../../errors/overtaken";
import { dataFolder } from "../../identity/data-folder";
import { HARNESS_NAMES, type HarnessName } from "../../identity/harness";
import { nameIn, parentOf } from "../../identity/path-text";
import type { Platform } from "../../platform/platform";
import { hide, show } from "../installer/exclude";
import {
  clearUnfinished,
  type Left,
  type Objection,
  OthersFiles,
  type Standing,
  standingsOf,
  unlessObjected,
} from "../installer/files";
import { REMARK } from "./codex-toml";
import { lookAt } from "./look";
import { type Found, planInstall, planUninstall, type Removals, type SitePlan, type Wishes } from "./plan";
import {
  allRecords,
  type FileRecord,
  modeWithout,
  readRecord,
  removeRecord,
  type Shelf,
  writeRecord,
} from "./record";
import { type Grounds, type Level, sitesOf } from "./sites";
import { stateOf } from "./state";

/** Settings of harnesses, and where Git keeps what it passes over in this clone; null outside of any. */
export interface HarnessFiles {
  readonly platform: Platform;
  readonly shelf: Shelf;
  readonly clone: { readonly root: string; readonly commonDir: string } | null;
}

/** One level of settings, with all that is needed to change them. */
export interface HarnessLevel extends HarnessFiles {
  readonly level: Level;
  readonly surroundings: Surroundings;
  readonly grounds: Grounds;
  readonly workspace: Workspace | null;
}

const PRIVATE = { file: 0o600, directory: 0o700 };

/** The settings of this worktree. */
export function projectLevel(workspace: Workspace): HarnessLevel {
  const { surroundings, repository, store } = workspace;
  const { platform, home, env } = surroundings;
  const { worktreeRoot: root, commonDir, controlDir } = repository;
  const shelf = { directory: `${controlDir}/agents`, modes: store.options.modes };
  const grounds = { root, home, env };
  return { level: "project", surroundings, platform, workspace, grounds, shelf, clone: { root, commonDir } };
}

/** The user's own. Works outside of any repository. */
export function userLevel(surroundings: Surroundings): HarnessLevel | null {
  const { platform, home, env } = surroundings;
  const data = dataFolder(env, home);
  if (data === null) return null;
  const shelf: Shelf = { directory: `${data}/cotenant/agents`, modes: PRIVATE };
  const grounds = { root: null, home, env };
  return { level: "user", surroundings, platform, workspace: null, grounds, shelf, clone: null };
}

/** Everything that harnesses may have at that level. */
export async function findIn(at: HarnessLevel, ...harnesses: readonly HarnessName[]): Promise<Found[]> {
  const { platform, grounds, shelf, workspace, surroundings } = at;
  const looked: Omit<Found, "standing">[] = [];
  for (const site of harnesses.flatMap((harness) => sitesOf(harness, at.level, grounds)))
    looked.push({
      site,
      file: await lookAt(platform.files, site, grounds.root),
      record: await readRecord(platform, shelf, site.path),
    });
  const known = looked.filter(({ file }) => file.why === null).map(({ file }) => file.path);
  const { worktreeRoot: root = "", gitDir = "" } = workspace?.repository ?? {};
  // Git is asked once, for all of them.
  const standings: ReadonlyMap<string, Standing> =
    workspace === null ? new Map() : await standingsOf(surroundings.git, { root, gitDir }, known);
  return looked.map((one) => ({ ...one, standing: standings.get(one.file.path) ?? null }));
}

export type InstallHow = Pick<Wishes, "program" | "shared" | "via">;

/** Looks and decides for all of them before anything is written: an objection against one is one against all. */
export async function planAgents(
  at: HarnessLevel,
  harnesses: readonly HarnessName[],
  how: InstallHow,
): Promise<SitePlan[]> {
  const decided = await decideEach(at, harnesses, how);
  return decided.map(([harness, plan]) => unlessObjected(plan, { harness }));
}

/** The same, with an objection against one in the place of its plan. */
export async function decideEach(
  at: HarnessLevel,
  harnesses: readonly HarnessName[],
  how: InstallHow,
): Promise<[HarnessName, SitePlan | Objection][]> {
  const { digest } = at.platform;
  const all = await findIn(at, ...harnesses);
  return harnesses.map((harness) => {
    const found = all.filter(({ site }) => site.harness === harness);
    return [harness, planInstall(found, { ...how, digestOf: (text) => digest.sha256(text) })];
  });
}

export async function installAgents(
  at: HarnessLevel,
  harnesses: readonly HarnessName[],
  how: InstallHow,
): Promise<SitePlan[]> {
  return evenIfOvertaken(async () => {
    const plans = await planAgents(at, harnesses, how);
    await writeAgents(at, plans);
    return plans;
  });
}

export async function writeAgents(at: HarnessLevel, plans: readonly SitePlan[]): Promise<void> {
  if (at.workspace !== null) {
    const shared = plans.filter(({ isShared, after }) => isShared && after !== null);
    await refuseRuledFiles(
      at.workspace,
      shared.map(({ file }) => file.path),
    );
    await at.workspace.store.prepare();
  }
  await applyInstall(at, plans);
}

export async function planAgentRemoval(
  at: HarnessLevel,
  harnesses: readonly HarnessName[],
  shared: boolean,
): Promise<Removals & { readonly others: readonly FileRecord[] }> {
  const { digest } = at.platform;
  const others = await allRecords(at.platform, at.shelf);
  const found = await findIn(at, ...harnesses);
  const plan = planUninstall(found, { shared, digestOf: (text) => digest.sha256(text) });
  return { ...plan, others };
}

/** What Git passes over is nobody's work. */
export async function refuseRuledRemovals(
  { workspace }: HarnessLevel,
  { removals }: Pick<Removals, "removals">,
): Promise<void> {
  const seen = removals.filter(({ found }) => found.standing !== "ignored");
  if (workspace !== null)
    await refuseRuledFiles(
      workspace,
      seen.map(({ found }) => found.file.path),
    );
}

/** What these harnesses have in the user's own settings, which stays when a project's are taken out. */
export async function leftToUser(
  surroundings: Surroundings,
  harnesses: readonly HarnessName[],
): Promise<Left[]> {
  const at = userLevel(surroundings);
  const found = at === null ? [] : await findIn(at, ...harnesses);
  const digestOf = (text: string) => surroundings.platform.digest.sha256(text);
  return found
    .filter((one) => ["installed", "outdated", "changed"].includes(stateOf(one, digestOf).state))
    .map(({ site }) => ({
      path: site.path,
      why: "it is yours, for all your projects; add --user to take it out",
    }));
}

export async function removeAgents(
  at: HarnessLevel,
  plan: Awaited<ReturnType<typeof planAgentRemoval>>,
): Promise<void> {
  const gone = new Set(
    [...plan.removals.map(({ found }) => found), ...plan.absent].map(({ site }) => site.path),
  );
  const kept = plan.others.filter(({ path, isShared }) => !gone.has(path) && !isShared);
  // The list is one for all worktrees, and another one may still need the name.
  const isStillHidden = (name: string) => kept.some(({ path }) => path.endsWith(`/${name}`));
  await applyUninstall(at, plan, isStillHidden);
}

const HIDER = { name: "agents", remark: REMARK };
const SETTINGS = { doing: "writing settings", text: "utf-8" } as const;

/**
 * What is put in is remembered before it is put in, and forgotten after it is out: whoever is killed in between can be
 * undone to the byte.
 */
export async function applyInstall(at: HarnessFiles, plans: readonly SitePlan[]): Promise<void> {
  const { platform, shelf, clone } = at;
  const files = new OthersFiles(platform, SETTINGS);
  const hidden = plans.filter(({ hides }) => hides).map(({ site }) => site.shown);
  if (clone !== null && hidden.length > 0) await hide(platform, clone.commonDir, hidden, HIDER);
  const shown = plans.filter(({ isShared }) => isShared).map(({ site }) => site.shown);
  if (clone !== null && shown.length > 0) await show(platform, clone.commonDir, shown, HIDER);
  for (const { record, after, file, mode } of plans) {
    if (after === null || record === null) continue;
    await files.makeDirectories(shelf.directory, shelf.modes.directory);
    await writeRecord(platform, shelf, record);
    for (const directory of file.missing)
      await files.attempt(directory, () => platform.files.makeDirectory(directory, 0o755));
    await files.attempt(file.path, async () => {
      await files.compare(file.path, file.text);
      await files.replace(file.path, after, mode);
      await clearBeside(platform, file.path);
    });
    if (record.placements.length > 1)
      await writeRecord(platform, shelf, { ...record, placements: record.placements.slice(0, 1) });
  }
}

export async function applyUninstall(
  at: HarnessFiles,
  { removals, absent }: Removals,
  isStillHidden: (name: string) => boolean,
): Promise<void> {
  const { platform, clone } = at;
  const files = new OthersFiles(platform, SETTINGS);
  for (const { found, after } of removals) {
    const { path, text } = found.file;
    await files.attempt(path, async () => {
      await files.compare(path, text);
      if (after === null) await files.remove(path);
      else await files.replace(path, after, modeWithout(found));
      await clearBeside(platform, path);
    });
    await forget(at, files, found);
  }
  for (const found of absent) if (found.record !== null) await forget(at, files, found);
  const names = [...removals.map(({ found }) => found), ...absent]
    .filter(({ site }) => site.level === "project")
    .map(({ site }) => site.shown)
    .filter((name) => !isStillHidden(name));
  if (clone !== null) await show(platform, clone.commonDir, names, HIDER);
}

async function forget(
  { platform, shelf }: HarnessFiles,
  files: OthersFiles,
  { site, record }: Found,
): Promise<void> {
  // Innermost first; what somebody else has put something into stays.
  for (const directory of [...(record?.madeDirectories ?? [])].reverse())
    await files.attempt(directory, () => platform.files.removeDirectory(directory));
  if (record !== null) await removeRecord(platform, shelf, site.path);
}

function clearBeside(platform: Platform, path: string, recentMs?: number): Promise<void> {
  return clearUnfinished(platform, parentOf(path) ?? "/", (name) => name === nameIn(path), recentMs);
}

/** Files that a writer of settings, or of what is remembered of them, left when it was killed. */
export async function tidyAgents(
  { platform, shelf, grounds }: HarnessLevel,
  recentMs: number,
): Promise<void> {
  await clearUnfinished(platform, shelf.directory, () => true, recentMs);
  for (const { path } of HARNESS_NAMES.flatMap((harness) => sitesOf(harness, "project", grounds)))
    await clearBeside(platform, path, recentMs);
}
