import { fileFailure } from "../../../errors/cotenant-error";
import { Overtaken } from "../../../errors/overtaken";
import { joinPath, parentOf } from "../../../identity/path-text";
import { fromBinary, toBinary } from "../../../platform/binary-text";
import type { Files, Platform } from "../../../platform/platform";
import { replaceFile } from "../../../platform/replace-file";
import { ALL_HOOKS } from "./hooks";
import type { InstallPlan, Write } from "./plan";
import type { Removal, UninstallPlan } from "./unplan";

/**
 * Carries a plan out, file by file. Each file is as before or as planned at every instant, and stays so when the power
 * fails; whoever was interrupted runs the same command again.
 */
export async function applyInstall(platform: Platform, { makes, hooks, entry }: InstallPlan): Promise<void> {
  if (makes !== null) await attempt(makes, () => makeDirectories(platform.files, makes));
  for (const { write } of hooks) if (write !== null) await attempt(write.path, () => put(platform, write));
  const configured = entry?.write ?? null;
  if (configured !== null) await attempt(configured.path, () => put(platform, configured));
  const [first] = hooks;
  if (first !== undefined) await clearUnfinished(platform, parentOf(first.path) ?? "/");
}

async function put(platform: Platform, write: Write): Promise<void> {
  const { path, text, mode, was, kept } = write;
  const bytes = was?.text === null ? null : await platform.files.readFile(path);
  const now = bytes === null ? null : toBinary(bytes);
  // Somebody else may be installing, or writing a hook: theirs is never lost by ours.
  if (now === text && (was === null || was.text !== text)) return;
  if (was?.text !== null && now !== (was?.text ?? null)) throw new Overtaken(path);
  if (kept !== null) await keep(platform, kept);
  await replaceFile(platform, path, fromBinary(text), mode & 0o777);
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
  const { files } = platform;
  const { directory, removals, madeDirectory } = plan;
  for (const removal of removals) await attempt(removal.path, () => undo(platform, removal));
  if (removals.length === 0 || directory === null) return;
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
    const [, hook] = /^([a-z-]+)(?:\.legacy|\.before-cotenant)?\.new-[0-9a-f]{12}$/.exec(name) ?? [];
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
