import { CotenantError, during } from "../errors/cotenant-error";
import { freshSuffix } from "../platform/hex";
import type { Files } from "../platform/platform";
import type { LogActor } from "./envelope";
import type { Layout } from "./layout";
import type { Store } from "./store";

/** A store on its way out, or one whose making was not finished. Nobody takes it for a store. */
const REMOVED = /^\.(?:gone-[0-9a-f]{12}|new)$/;

/**
 * Takes the control plane away. `inspect` runs in the critical section and refuses by throwing. Then one rename ends
 * the store for everybody at the same instant: a crash before it has done nothing, a crash after it leaves a
 * directory that only the next call looks at. Whoever waits for the mutex meanwhile finds that its file has no name
 * any more (PROTOCOL 2), and holds a lock on nothing. False when there was no store.
 */
export async function dismantle(
  store: Store,
  actor: LogActor,
  inspect: () => Promise<void>,
): Promise<boolean> {
  const { platform, layout } = store;
  const { files } = platform;
  const wasThere = (await files.lstat(layout.root)) !== null;
  try {
    if (wasThere)
      await store.hold(actor, async () => {
        await inspect();
        await rename(store, `${layout.root}.gone-${freshSuffix(platform.random)}`);
      });
  } catch (error) {
    // Somebody else's call was first, and ours found nothing left to lock.
    if ((error as { code?: unknown }).code !== "E_STORE_BUSY" || (await files.lstat(layout.root)) !== null)
      throw error;
  }
  for (const path of await removedStores(files, layout)) await clearAway(files, path);
  return wasThere;
}

/** What earlier calls did not get to remove. */
export async function removedStores(files: Files, { root }: Layout): Promise<string[]> {
  const slash = root.lastIndexOf("/");
  const [parent, name] = [root.slice(0, slash), root.slice(slash + 1)];
  return ((await files.readDirectory(parent)) ?? [])
    .filter((other) => other.startsWith(name) && REMOVED.test(other.slice(name.length)))
    .sort()
    .map((other) => `${parent}/${other}`);
}

/** Durable before anything is deleted, or a power cut could leave half a store under its old name. */
async function rename({ platform, layout }: Store, gone: string): Promise<void> {
  const { files } = platform;
  await during("taking the control plane away", layout.root, async () => {
    await files.rename(layout.root, gone);
    await files.syncDirectory(layout.root.slice(0, layout.root.lastIndexOf("/")) || "/");
  });
}

/** As much as can be. In a shared repository each user's secrets are for that user alone to remove. */
async function clearAway(files: Files, path: string): Promise<void> {
  // Somebody may have put it on another disk: the directory there is theirs, what is in it is ours.
  const target = (await files.lstat(path))?.kind === "symlink" ? await files.realPath(path) : null;
  const left = (target === null ? null : await removeInside(files, target)) ?? (await remove(files, path));
  if (left === null) return;
  throw new CotenantError("E_PERMISSION", `it is out of use, but some of it cannot be deleted: ${left}`, {
    hint: "its owner runs 'cotenant deinit' here to finish it",
    data: { path: left },
  });
}

/** Null when all of it is gone, else the first that is not. */
async function remove(files: Files, path: string): Promise<string | null> {
  try {
    if ((await files.lstat(path))?.kind !== "directory") {
      await files.unlink(path);
      return null;
    }
    const left = await removeInside(files, path);
    if (left === null) await files.removeDirectory(path);
    return left;
  } catch {
    return path;
  }
}

async function removeInside(files: Files, directory: string): Promise<string | null> {
  let left: string | null = null;
  for (const name of (await files.readDirectory(directory)) ?? [])
    left = (await remove(files, `${directory}/${name}`)) ?? left;
  return left;
}
