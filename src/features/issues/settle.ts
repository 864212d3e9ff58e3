import type { Ulid } from "../../kernel/ids";
import { clearLeftovers } from "./cache/file";
import { IssueFolder } from "./folder";
import type { IssueReader } from "./reader";
import type { WrittenStamp } from "./stamps";

/**
 * Finishes what was logged and not carried out, in whichever worktree, and clears away what was begun and never
 * logged. Nothing depends on it: readers see the one and pass over the other.
 *
 * `exclusively`: under the store's mutex. Whoever writes may be between the log and the file, and needs no help.
 */
export async function settleIssues(
  reader: IssueReader,
  recentMs: number,
  exclusively: (act: () => Promise<void>) => Promise<void>,
): Promise<number> {
  const { sources, here } = reader;
  const folderOf = async (stamp: WrittenStamp) => {
    const isHere = stamp.worktreeId === (sources.here.worktreeId ?? "");
    const root = isHere ? here.root : await sources.rootOf(stamp.worktreeId);
    return root === null ? null : new IssueFolder(sources.platform, root);
  };
  const suspects: Ulid[] = [];
  for (const [id, stamp] of await sources.stamps(null))
    if ((await (await folderOf(stamp))?.isUnfinished(id, stamp)) === true) suspects.push(id);
  let finished = 0;
  if (suspects.length > 0)
    await exclusively(async () => {
      for (const [id, stamp] of await sources.stamps(suspects))
        if ((await (await folderOf(stamp))?.finish(id, stamp)) === true) finished++;
    });
  await here.clearUnfinished(recentMs);
  const { cache, platform } = sources;
  if (cache !== null)
    await clearLeftovers(platform, cache.path.slice(0, cache.path.lastIndexOf("/")), recentMs);
  return finished;
}
