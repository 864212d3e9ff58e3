import { Overtaken } from "../../../errors/overtaken";
import { joinPath, parentOf } from "../../../identity/path-text";
import type { Platform } from "../../../platform/platform";
import { hiddenBy, hide, show } from "../../installer/exclude";
import {
  clearUnfinished,
  type Installed,
  isObjection,
  type Left,
  type Objection,
  OthersFiles,
} from "../../installer/files";
import { ALL_HOOKS, findBlock, type InstalledHook } from "./block";
import { type HooksSurvey, lefthookFiles, lookAtHooks } from "./look";
import { everyPlace, type HooksHome } from "./place";
import { type InstallPlan, planInstall, type Wishes, type Write } from "./plan";
import { addToRecord, type HooksWorktree, readRecord, removeRecord } from "./record";
import { planEntryRemoval, planUninstall, type Removal, type UninstallPlan } from "./removal";

/** The repository whose hooks are meant, and where it is kept that they are wanted: nowhere in a bare one. */
export interface HooksWork {
  readonly platform: Platform;
  readonly home: HooksHome;
  readonly names: readonly InstalledHook[];
  readonly control: HooksControl | null;
}

interface HooksControl extends HooksWorktree {
  readonly modes: { readonly directory: number; readonly file: number };
}

const HIDER = {
  name: "hooks",
  remark: "by 'cotenant hooks install'; 'cotenant hooks uninstall' takes it out",
};

const HOOK_FILES = { doing: "writing a hook", text: "binary" } as const;

/** Looks, and decides. With `shared`, what was put in for this clone alone must go first. */
export async function planHooks(
  work: HooksWork,
  wishes: Wishes,
  isDry: boolean,
): Promise<{ readonly scene: HooksSurvey; readonly plan: InstallPlan | Objection }> {
  const look = () => lookAtHooks(work.home, work.names);
  let scene = await look();
  if (wishes.shared && !isDry && !isObjection(planInstall(scene, wishes))) {
    const local = planUninstall(scene, { shared: false, force: wishes.force }).removals.filter(
      ({ path }) => scene.huskyDirectory !== null && !scene.versioned.has(path),
    );
    if (local.length > 0) {
      const { directory } = scene.place;
      await applyUninstall(work.platform, { directory, removals: local, left: [], madeDirectory: false });
      await showGone(work);
      scene = await look();
    }
  }
  return { scene, plan: planInstall(scene, wishes) };
}

export async function carryOut(
  work: HooksWork,
  { place: { directory } }: HooksSurvey,
  plan: InstallPlan,
  program: Installed,
): Promise<void> {
  const { platform, home, control } = work;
  if (plan.hides.length > 0) await hide(platform, home.commonDir, plan.hides, HIDER);
  await applyInstall(platform, plan);
  await showGone(work);
  if (control !== null)
    await addToRecord(platform, control.controlDir, { directory, program }, control.modes.file);
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
  const files = new OthersFiles(platform, HOOK_FILES);
  const gone: string[] = [];
  for (const name of await hiddenBy(platform, home.commonDir, HIDER)) {
    const texts = await Promise.all(home.worktrees.map(({ root }) => files.read(joinPath(root, name))));
    if (!texts.some((text) => text !== null && findBlock(text) !== null)) gone.push(name);
  }
  if (gone.length > 0) await show(platform, home.commonDir, gone, HIDER);
}

/** Carries a plan out, file by file; whoever was interrupted runs the same command again. */
export async function applyInstall(platform: Platform, { makes, hooks, entry }: InstallPlan): Promise<void> {
  const files = new OthersFiles(platform, HOOK_FILES);
  if (makes !== null) await files.makeDirectories(makes, 0o755);
  for (const { write } of [...hooks, ...(entry === null ? [] : [entry])])
    if (write !== null) await files.attempt(write.path, () => put(platform, files, write));
  const [first] = hooks;
  if (first !== undefined) await clearUnfinishedHooks(platform, parentOf(first.path) ?? "/");
}

async function put(platform: Platform, files: OthersFiles, write: Write): Promise<void> {
  const { path, text, mode, was, kept } = write;
  // A program is not compared: its inode is, when it is kept.
  if (was?.text !== null) {
    // Somebody else may be installing: then it is done.
    if (was?.text !== text && (await files.read(path)) === text) return;
    await files.compare(path, was?.text ?? null);
  }
  if (kept !== null) await keep(platform, kept);
  await files.replace(path, text, mode);
}

/** Under both names for a moment, so that no commit meanwhile goes without it. */
async function keep({ files, random }: Platform, { path, from }: NonNullable<Write["kept"]>): Promise<void> {
  await files.makeDirectory(parentOf(path) ?? "/", 0o755);
  const inodeOf = async (name: string) => (await files.lstat(name))?.inode;
  if ((await inodeOf(path)) === from.inode) return;
  const suffix = Array.from(random.bytes(6), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const second = `${path}.new-${suffix}`;
  try {
    await files.link(from.path, second);
    const isIt = (await inodeOf(second)) === from.inode;
    if (isIt) await files.rename(second, path);
    // Two names of one file are not renamed onto each other.
    await files.unlink(second);
    if (isIt) return;
  } catch (error) {
    if (!NO_SECOND_NAMES.has((error as { code?: unknown }).code)) throw error;
  }
  // No second names here, or only for what a link leads to.
  if ((await inodeOf(from.path)) !== from.inode) throw new Overtaken(from.path);
  await files.rename(from.path, path);
}

const NO_SECOND_NAMES = new Set<unknown>(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK", "EXDEV"]);

export async function applyUninstall(platform: Platform, plan: UninstallPlan): Promise<void> {
  const { directory, removals, madeDirectory } = plan;
  const files = new OthersFiles(platform, HOOK_FILES);
  for (const removal of removals)
    await files.attempt(removal.path, async () => {
      if (removal.action === "taken_out") return files.replace(removal.path, removal.text, removal.mode);
      if (removal.action === "removed") return files.remove(removal.path);
      await platform.files.rename(removal.from, removal.path);
      await platform.files.syncDirectory(parentOf(removal.path) ?? "/");
    });
  if (removals.length === 0 || directory === null) return;
  await clearUnfinishedHooks(platform, directory);
  await platform.files.removeDirectory(joinPath(directory, "before-cotenant"));
  if (madeDirectory) await platform.files.removeDirectory(directory);
}

function clearUnfinishedHooks(platform: Platform, directory: string): Promise<void> {
  const isHook = (name: string) =>
    ALL_HOOKS.some((hook) => hook === name.replace(/\.(?:legacy|before-cotenant)$/, ""));
  return clearUnfinished(platform, directory, isHook);
}
