import type { BytePath, Trees } from "../../platform/trees";

/** A whole directory, never through a link. What is not there is fine. */
export async function removeTree(trees: Trees, path: BytePath): Promise<void> {
  const entry = await trees.look(path);
  if (entry === null) return;
  if (entry.kind !== "directory") {
    await trees.unlink(path);
    return;
  }
  // One that may not be written cannot be emptied.
  if ((entry.mode & 0o700) !== 0o700) await trees.chmod(path, entry.mode | 0o700);
  for (const { name, kind } of (await trees.list(path)) ?? []) {
    const inside = `${path}/${name}`;
    if (kind === "directory") await removeTree(trees, inside);
    else await trees.unlink(inside);
  }
  await trees.removeDirectory(path);
}

/** Each directory on the way that is missing, and the names of those that were made synced. */
export async function makeDirectories(trees: Trees, path: BytePath, mode = 0o755): Promise<void> {
  const missing: string[] = [];
  let at = path;
  while (at !== "" && (await trees.look(at)) === null) {
    missing.unshift(at);
    at = at.slice(0, at.lastIndexOf("/"));
  }
  for (const directory of missing) {
    await trees.makeDirectory(directory, mode);
    await trees.syncDirectory(directory.slice(0, directory.lastIndexOf("/")) || "/");
  }
}
