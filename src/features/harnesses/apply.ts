import { fileFailure } from "../../errors/cotenant-error";
import { Overtaken } from "../../errors/overtaken";
import { hide, show } from "../../identity/exclude";
import { nameIn, parentOf } from "../../identity/path-text";
import type { Platform } from "../../platform/platform";
import { replaceFile } from "../../platform/replace-file";
import { REMARK } from "./codex-toml";
import type { Found, SitePlan } from "./plan";
import { modeWithout, removeRecord, type Shelf, writeRecord } from "./record";
import { clearUnfinished } from "./tidy";
import type { Removal, Removals } from "./unplan";

const HIDER = { name: "agents", remark: REMARK };

/** Where Git keeps what it passes over in this clone; null outside of any. */
export interface Desk {
  readonly platform: Platform;
  readonly shelf: Shelf;
  readonly clone: { readonly root: string; readonly commonDir: string } | null;
}

/**
 * What is put in is remembered before it is put in, and forgotten after it is out: whoever is killed in between can be
 * undone to the byte. Each file is as before or as planned at every instant.
 */
export async function applyInstall(desk: Desk, plans: readonly SitePlan[]): Promise<void> {
  const { platform, shelf, clone } = desk;
  const hidden = plans.filter(({ hides }) => hides).map(({ site }) => site.shown);
  if (clone !== null && hidden.length > 0) await hide(platform, clone.commonDir, hidden, HIDER);
  const shown = plans.filter(({ isShared }) => isShared).map(({ site }) => site.shown);
  if (clone !== null && shown.length > 0) await show(platform, clone.commonDir, shown, HIDER);
  for (const plan of plans) {
    const { record, after, file } = plan;
    if (after === null || record === null) continue;
    await makeDirectories(platform, shelf.directory, shelf.modes.directory);
    await writeRecord(platform, shelf, record);
    for (const directory of file.missing) await attempt(directory, () => make(platform, directory));
    await attempt(file.path, () => put(platform, file.path, file.text, after, plan.mode));
    await attempt(file.path, () => clearBeside(platform, file.path));
    if (record.placements.length > 1)
      await writeRecord(platform, shelf, { ...record, placements: record.placements.slice(0, 1) });
  }
}

export async function applyUninstall(
  desk: Desk,
  { removals, absent }: Removals,
  isStillHidden: (name: string) => boolean,
): Promise<void> {
  const { platform, clone } = desk;
  for (const removal of removals) await takeOut(desk, removal);
  for (const found of absent) if (found.record !== null) await forget(desk, found);
  const names = [...removals.map(({ found }) => found), ...absent]
    .filter(({ site }) => site.level === "project")
    .map(({ site }) => site.shown);
  if (clone !== null)
    await show(
      platform,
      clone.commonDir,
      names.filter((name) => !isStillHidden(name)),
      HIDER,
    );
}

async function takeOut(desk: Desk, { found, after }: Removal): Promise<void> {
  const { platform } = desk;
  const { file } = found;
  await attempt(file.path, async () => {
    if (after !== null) return put(platform, file.path, file.text, after, modeWithout(found));
    await compare(platform, file.path, file.text);
    await platform.files.unlink(file.path);
    await platform.files.syncDirectory(parentOf(file.path) ?? "/");
  });
  await attempt(file.path, () => clearBeside(platform, file.path));
  await forget(desk, found);
}

async function forget({ platform, shelf }: Desk, { site, record }: Found): Promise<void> {
  // Innermost first; what somebody else has put something into stays.
  for (const directory of [...(record?.madeDirectories ?? [])].reverse())
    await attempt(directory, async () => void (await platform.files.removeDirectory(directory)));
  if (record !== null) await removeRecord(platform, shelf, site.path);
}

/** The harness itself, or another of us, may be writing there: theirs is never lost by ours. */
async function put(platform: Platform, path: string, was: string | null, text: string, mode: number) {
  await compare(platform, path, was);
  await replaceFile(platform, path, text, mode);
}

async function compare({ files }: Platform, path: string, was: string | null): Promise<void> {
  const bytes = await files.readFile(path);
  const now = bytes === null ? null : new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  if (now !== was) throw new Overtaken(path);
}

/** A minute old at least. */
function clearBeside(platform: Platform, path: string): Promise<void> {
  return clearUnfinished(platform, parentOf(path) ?? "/", (name) => name === nameIn(path), 60_000);
}

async function make({ files }: Platform, directory: string): Promise<void> {
  await files.makeDirectory(directory, 0o755);
}

async function makeDirectories(platform: Platform, path: string, mode: number): Promise<void> {
  if ((await platform.files.stat(path)) !== null) return;
  const above = parentOf(path);
  if (above !== null) await makeDirectories(platform, above, mode);
  await attempt(path, async () => void (await platform.files.makeDirectory(path, mode)));
}

async function attempt(path: string, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    throw fileFailure(error, "writing settings", path);
  }
}
