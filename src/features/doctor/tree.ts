import type { FileStat, Files } from "../../platform/platform";

export interface TreeEntry {
  readonly path: string;
  readonly stat: FileStat;
}

/** Whether something has that name; "closed" when a directory above it lets nobody look. */
export async function presenceOf(files: Files, path: string): Promise<"there" | "absent" | "closed"> {
  try {
    return (await files.stat(path)) === null ? "absent" : "there";
  } catch {
    return "closed";
  }
}

/** No store has as many outside of its index; a check ends where a wrong one does not. */
const MOST = 20_000;

/** Everything below a directory, itself first, links not followed; and the directories that cannot be read. */
export async function treeBelow(
  files: Files,
  root: string,
  isWanted: (path: string) => boolean = () => true,
): Promise<{ entries: TreeEntry[]; unreadable: string[] }> {
  const entries: TreeEntry[] = [];
  const unreadable: string[] = [];
  const waiting = [root];
  for (let path = waiting.pop(); path !== undefined && entries.length < MOST; path = waiting.pop()) {
    try {
      const stat = await files.lstat(path);
      if (stat === null) continue;
      entries.push({ path, stat });
      if (stat.kind !== "directory") continue;
      const names = (await files.readDirectory(path)) ?? [];
      const inside = names.sort().map((name) => `${path}/${name}`);
      waiting.push(...inside.filter(isWanted).reverse());
    } catch {
      unreadable.push(path);
    }
  }
  return { entries, unreadable };
}
