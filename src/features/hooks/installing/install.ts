import { hiddenBy, hide, show } from "../../../identity/exclude";
import { joinPath } from "../../../identity/path-text";
import type { Platform } from "../../../platform/platform";
import { applyInstall, applyUninstall } from "./apply";
import { findBlock } from "./block";
import type { InstalledHook } from "./hooks";
import { lefthookFiles, lookAtHooks, type Scene } from "./look";
import { everyPlace, type HooksHome } from "./place";
import { type InstallPlan, isObjection, type Objection, planInstall, type Wishes } from "./plan";
import { addToRecord, type HooksWorktree, readRecord, removeRecord } from "./record";
import { type Left, planEntryRemoval, planUninstall, type Removal, type UninstallPlan } from "./unplan";

/** The repository whose hooks are meant, and where it is kept that they are wanted: nowhere in a bare one. */
export interface HooksWork {
  readonly platform: Platform;
  readonly home: HooksHome;
  readonly names: readonly InstalledHook[];
  readonly control: HooksControl | null;
}

export interface HooksControl extends HooksWorktree {
  readonly modes: { readonly directory: number; readonly file: number };
}

const HIDER = {
  name: "hooks",
  remark: "by 'cotenant hooks install'; 'cotenant hooks uninstall' takes it out",
};

/** Looks, and decides. With `shared`, what was put in for this clone alone must go first. */
export async function planHooks(
  work: HooksWork,
  wishes: Wishes,
  isDry: boolean,
): Promise<{ readonly scene: Scene; readonly plan: InstallPlan | Objection }> {
  const look = () => lookAtHooks(work.home, work.names);
  let scene = await look();
  if (wishes.shared && !isDry && !isObjection(planInstall(scene, wishes))) {
    const local = planUninstall(scene, { shared: false, force: wishes.force }).removals.filter(
      ({ path }) => scene.huskyDirectory !== null && !scene.versioned.has(path),
    );
    if (local.length > 0) {
      await applyUninstall(work.platform, {
        directory: scene.place.directory,
        removals: local,
        left: [],
        madeDirectory: false,
      });
      await showGone(work);
      scene = await look();
    }
  }
  return { scene, plan: planInstall(scene, wishes) };
}

export async function carryOut(
  work: HooksWork,
  { place }: Scene,
  plan: InstallPlan,
  program: Wishes["program"],
): Promise<void> {
  const { platform, home, control } = work;
  if (plan.hides.length > 0) await hide(platform, home.commonDir, plan.hides, HIDER);
  await applyInstall(platform, plan);
  await showGone(work);
  if (control !== null)
    await addToRecord(
      platform,
      control.controlDir,
      { directory: place.directory, program },
      control.modes.file,
    );
}

/** Everything that can be taken out, wherever hooks of this repository may be. */
export interface Removals {
  readonly plans: readonly UninstallPlan[];
  readonly removals: readonly Removal[];
  readonly left: readonly Left[];
}

export async function planRemoval(
  { platform, home, control, names }: HooksWork,
  how: { readonly shared: boolean; readonly force: boolean },
): Promise<Removals> {
  const record = control === null ? null : await readRecord(platform, control.controlDir);
  const plans: UninstallPlan[] = [];
  for (const place of await everyPlace(home, record?.directories ?? []))
    plans.push(planUninstall(await lookAtHooks(home, names, place), how));
  for (const { root } of home.worktrees)
    plans.push(planEntryRemoval(await lefthookFiles(home.files, root), how));
  const used = plans.filter(({ removals, left }) => removals.length + left.length > 0);
  return {
    plans: used,
    removals: used.flatMap(({ removals }) => removals),
    left: used.flatMap(({ left }) => left),
  };
}

export async function removeHooks(work: HooksWork, { plans }: Removals): Promise<void> {
  for (const plan of plans) await applyUninstall(work.platform, plan);
  await showGone(work);
  if (work.control !== null) await removeRecord(work.platform, work.control.controlDir);
}

/** A file that has no lines of ours any more is the project's own business again. */
async function showGone({ platform, home }: HooksWork): Promise<void> {
  const gone: string[] = [];
  for (const name of await hiddenBy(platform, home.commonDir, HIDER)) {
    const isOurs = async (root: string) => {
      const bytes = await platform.files.readFile(joinPath(root, name));
      return bytes !== null && findBlock(new TextDecoder("latin1").decode(bytes)) !== null;
    };
    const found = await Promise.all(home.worktrees.map(({ root }) => isOurs(root)));
    if (!found.includes(true)) gone.push(name);
  }
  if (gone.length > 0) await show(platform, home.commonDir, gone, HIDER);
}
