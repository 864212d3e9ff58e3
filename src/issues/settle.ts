import { clearLeftovers } from "./cache/file";
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
  const { cache, platform } = sources;
  if (cache !== null)
    await clearLeftovers(platform, cache.path.slice(0, cache.path.lastIndexOf("/")), recentMs);
  return finished;
}
