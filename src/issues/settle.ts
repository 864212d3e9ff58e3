import { IssueFolder } from "./folder";
import type { IssueReader } from "./reader";

/**
 * Finishes what was logged and not carried out, in whichever worktree, and clears away what was begun and never
 * logged. Nothing depends on it: readers see the one and pass over the other.
 */
export async function settleIssues(reader: IssueReader, recentMs: number): Promise<number> {
  const { sources, here } = reader;
  let finished = 0;
  for (const [id, stamp] of await sources.stamps(null)) {
    const isHere = stamp.worktreeId === (sources.here.worktreeId ?? "");
    const root = isHere ? here.root : await sources.rootOf(stamp.worktreeId);
    if (root !== null && (await new IssueFolder(sources.platform, root).finish(id, stamp))) finished++;
  }
  await here.clearUnfinished(recentMs);
  await clearCache(reader, recentMs);
  return finished;
}

/** What processes left that died while they kept what they had read. */
async function clearCache({ sources }: IssueReader, recentMs: number): Promise<void> {
  const { platform, cachePath } = sources;
  if (cachePath === null) return;
  const folder = cachePath.slice(0, cachePath.lastIndexOf("/"));
  for (const name of (await platform.files.readDirectory(folder)) ?? []) {
    const stat = /\.new-[0-9a-f]+$/.test(name) ? await platform.files.lstat(`${folder}/${name}`) : null;
    if (stat?.kind === "file" && stat.mtimeMs < platform.clock.wallMs() - recentMs)
      await platform.files.unlink(`${folder}/${name}`);
  }
}
