import { fileFailure } from "../../errors/cotenant-error";
import { joinPath, parentOf } from "../../identity/path-text";
import type { Files, Platform } from "../../platform/platform";
import { replaceFile } from "../../platform/replace-file";
import { fromBinary } from "./bytes";
import { ALL_HOOKS } from "./hooks";
import type { InstallPlan, Write } from "./plan";
import type { Removal, UninstallPlan } from "./unplan";

/**
 * Carries a plan out, file by file. Each file is as before or as planned at every instant, and stays so when the power
 * fails; whoever was interrupted runs the same command again.
 */
export async function applyInstall(platform: Platform, { makes, hooks }: InstallPlan): Promise<void> {
  if (makes !== null) await attempt(makes, () => makeDirectories(platform.files, makes));
  for (const { write } of hooks)
    if (write !== null)
      await attempt(write.path, async () => {
        if (write.kept !== null) await keep(platform.files, write.kept);
        await replaceFile(platform, write.path, fromBinary(write.text), write.mode & 0o777);
      });
  const [first] = hooks;
  if (first !== undefined) await clearUnfinished(platform, parentOf(first.path) ?? "/");
}

/** Under both names for a moment, so that no commit meanwhile goes without it. */
async function keep(files: Files, { path, from }: NonNullable<Write["kept"]>): Promise<void> {
  await files.makeDirectory(parentOf(path) ?? "/", 0o755);
  const there = await files.lstat(path);
  if (there?.inode === from.inode && from.kind === "file") return;
  if (there !== null) await files.unlink(path);
  // Systems disagree on what a second name of a link is a name of.
  if (from.kind === "file") {
    try {
      await files.link(from.path, path);
      return;
    } catch (error) {
      if (!NO_SECOND_NAMES.has((error as { code?: unknown }).code)) throw error;
    }
  }
  await files.rename(from.path, path);
}

const NO_SECOND_NAMES = new Set<unknown>(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK", "EXDEV"]);

export async function applyUninstall(platform: Platform, plan: UninstallPlan): Promise<void> {
  const { files } = platform;
  const { directory, removals, madeDirectory } = plan;
  for (const removal of removals) await attempt(removal.path, () => undo(platform, removal));
  if (removals.length === 0) return;
  await clearUnfinished(platform, directory);
  await files.removeDirectory(joinPath(directory, "before-cotenant"));
  if (madeDirectory) await files.removeDirectory(directory);
}

async function undo(platform: Platform, removal: Removal): Promise<void> {
  const { files } = platform;
  const { path } = removal;
  if (removal.action === "taken_out")
    return replaceFile(platform, path, fromBinary(removal.text), removal.mode & 0o777);
  if (removal.action === "restored") await files.rename(removal.from, path);
  else await files.unlink(path);
  await files.syncDirectory(parentOf(path) ?? "/");
}

/** Files of a writer that was killed. A minute old at least: a younger one may have its writer still. */
async function clearUnfinished({ files, clock }: Platform, directory: string): Promise<void> {
  for (const name of (await files.readDirectory(directory)) ?? []) {
    const [, hook] = /^([a-z-]+)(?:\.legacy)?\.new-[0-9a-f]{12}$/.exec(name) ?? [];
    if (!ALL_HOOKS.some((known) => known === hook)) continue;
    const path = joinPath(directory, name);
    const mtimeMs = (await files.lstat(path))?.mtimeMs ?? Number.POSITIVE_INFINITY;
    if (mtimeMs < clock.wallMs() - 60_000) await files.unlink(path);
  }
}

async function makeDirectories(files: Files, path: string): Promise<void> {
  if ((await files.stat(path)) !== null) return;
  const above = parentOf(path);
  if (above !== null) await makeDirectories(files, above);
  await files.makeDirectory(path, 0o755);
}

async function attempt(path: string, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    throw fileFailure(error, "writing a hook", path);
  }
}
