import { isIndefinite, type Lease, type Slot, slotOf } from "../kernel/lease";
import { bootOf } from "../kernel/time";
import type { Platform } from "../platform/platform";
import { type Applied, decodeApplied } from "./applied";
import { IndexTree } from "./index-tree";
import { type Layout, PRIVATE } from "./layout";
import { Replay, replayLog } from "./replay";
import { DamagedIndex } from "./tree-files";
import { leaseToWire } from "./wire";

/**
 * - `absent`, `other-boot`, `unfinished`, `other-log`: nobody goes by it; the next writer makes it anew
 * - `behind`: right, but for the newest lines; the next writer adds them
 * - `wrong`: it is trusted, and says something else than the log
 */
export type IndexState = "fits" | "absent" | "other-boot" | "unfinished" | "other-log" | "behind" | "wrong";

export interface IndexSurvey {
  readonly state: IndexState;
  /** What the index says and the log does not, or the other way round. */
  readonly differences: readonly string[];
  readonly leases: number;
}

const ATTEMPTS = 4;
const PAUSE_MS = 25;

/** Replays the log in memory and compares. Takes no lock, so that what differs is looked at more than once. */
export async function surveyIndex(platform: Platform, layout: Layout): Promise<IndexSurvey> {
  let last = await once(platform, layout);
  for (let attempt = 1; attempt < ATTEMPTS && last.state === "wrong"; attempt++) {
    await platform.timers.sleep(PAUSE_MS).done;
    last = await once(platform, layout);
  }
  return last;
}

async function once(platform: Platform, layout: Layout): Promise<IndexSurvey> {
  const { files, digest, clock } = platform;
  const plain = (state: IndexState, ...differences: string[]) => ({ state, differences, leases: 0 });
  const bytes = await files.readFile(layout.applied);
  if (bytes === null) return plain("absent");
  const applied = decodeApplied(digest, bytes);
  if (applied === null) return plain("unfinished");
  if (applied.head.segment === 0) return plain("unfinished");
  if (applied.bootId !== bootOf(clock.clockId())) return plain("other-boot");
  if ((await files.stat(layout.log)) === null) return plain("other-log");
  const fd = await files.open(layout.log, "read");
  try {
    const { inode, size } = await files.fstat(fd);
    if (inode !== applied.inode || size < applied.head.offset) return plain("other-log");
    const replay = await replayLog(files, digest, fd, applied.head.offset, new Replay());
    if (replay.damage !== null || replay.head.sum !== applied.head.sum) return plain("other-log");
    const then = new Map(replay.leases);
    await replayLog(files, digest, fd, (await files.fstat(fd)).size, replay);
    return await compared(platform, layout, applied, { then, now: replay });
  } finally {
    await files.close(fd);
  }
}

async function compared(
  platform: Platform,
  layout: Layout,
  applied: Applied,
  log: { readonly then: ReadonlyMap<Slot, Lease>; readonly now: Replay },
): Promise<IndexSurvey> {
  const index = new IndexTree(platform.files, platform.digest, layout, PRIVATE);
  await index.standOn(applied.census, applied.head.sequence);
  const found = new Map<Slot, Lease>();
  const differences: string[] = [];
  for await (const lease of index.salvage()) found.set(slotOf(lease), lease);
  for (const slot of new Set([...found.keys(), ...log.then.keys(), ...log.now.leases.keys()])) {
    const why = difference(found.get(slot), log.then.get(slot), log.now.leases.get(slot));
    if (why !== null) differences.push(`${slot.replace("\n", " in ")}: ${why}`);
  }
  differences.push(...(await countedWrong(index, [...log.then.values()])));
  const isBehind = log.now.head.sequence > applied.head.sequence;
  const state = differences.length > 0 ? "wrong" : isBehind ? "behind" : "fits";
  return { state, differences, leases: found.size };
}

/** A writer at work may have brought a line into the index already that `applied` does not name yet. */
function difference(
  found: Lease | undefined,
  then: Lease | undefined,
  now: Lease | undefined,
): string | null {
  const text = (lease: Lease | undefined) => (lease === undefined ? "" : JSON.stringify(leaseToWire(lease)));
  if ([text(then), text(now)].includes(text(found))) return null;
  if (found === undefined) return "the index lacks it";
  return then === undefined ? "only the index has it" : "the index has it otherwise than the log";
}

/** What the census and the list of leases without expiry say. */
async function countedWrong(index: IndexTree, leases: readonly Lease[]): Promise<string[]> {
  try {
    for await (const _ of index.all());
    const marked = new Set((await index.indefinite()).map(({ leaseId }) => leaseId));
    return leases
      .filter((lease) => isIndefinite(lease) && !marked.has(lease.leaseId))
      .map(({ key }) => `${key}: not listed as being without expiry`);
  } catch (error) {
    if (!(error instanceof DamagedIndex)) throw error;
    return ["the census does not fit the files"];
  }
}
