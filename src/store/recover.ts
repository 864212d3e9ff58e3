import { CotenantError } from "../errors/cotenant-error";
import type { FencingToken } from "../kernel/ids";
import { type Lease, slotOf } from "../kernel/lease";
import type { LogActor } from "./envelope";
import { fileTime } from "./ground";
import { DamagedIndex } from "./index-tree";
import { NOWHERE, Replay, replayLog } from "./replay";
import type { Store } from "./store";
import { SyncMark } from "./sync-mark";

/** Far enough above every token ever seen that no lost line can have granted a higher one. */
export const TOKEN_LEAP = 1_000_000;

export interface RecoveryReport {
  /** False when there was nothing to mend. */
  readonly recovered: boolean;
  readonly damage: { readonly offset: number; readonly why: string } | null;
  readonly salvagedLines: number;
  readonly leases: number;
  /** Leases that only the index still knew. */
  readonly leasesFromIndex: number;
  readonly nextToken: number;
  /** Where the damaged file is kept, in the archive. */
  readonly keptAs: string | null;
}

/** Salvages every whole line into a new segment, keeps the damaged file, and says what it did. */
export async function recover(store: Store, actor: LogActor): Promise<RecoveryReport> {
  return store.hold(actor, async () => {
    const { platform, layout, keeper } = store;
    const { files, digest, clock } = platform;
    const log = await keeper.attach();
    const archived = ((await files.readDirectory(layout.archive)) ?? [])
      .filter((n) => /^claims-\d{6}\.jsonl/.test(n))
      .sort();
    if (log === null && archived.length === 0 && (await files.stat(layout.applied)) === null) {
      return nothingToDo(new Replay());
    }
    const replay =
      log === null
        ? await fromArchive(store, archived)
        : await replayLog(files, digest, log.fd, log.stat.size, new Replay(), true);
    const mark = await new SyncMark(files, digest, layout, store.options.modes).read();
    const acknowledgedLost =
      replay.damage !== null && Math.max(replay.highestSynced, mark) >= replay.damage.sequence;
    if (log !== null && !acknowledgedLost) {
      // A torn tail is no damage: the next writer, which this is, sets it aside.
      await keeper.stand(actor);
      return nothingToDo(replay);
    }
    const onlyInIndex = await leasesOnlyInIndex(store, replay);
    for (const lease of onlyInIndex) replay.leases.set(slotOf(lease), lease);
    const highest = onlyInIndex.reduce(
      (top, lease) => Math.max(top, lease.fencingToken),
      replay.head.nextToken as number,
    );
    const sequence = Math.max(replay.head.sequence, replay.highestSynced, mark);
    replay.head = { ...replay.head, sequence, nextToken: (highest + TOKEN_LEAP) as FencingToken };
    const keptAs = log === null ? null : `damaged-${fileTime(clock.wallMs())}.jsonl`;
    const extra = {
      recovered: {
        damage: replay.damage,
        salvaged_lines: replay.counted,
        leases_from_index: onlyInIndex.length,
      },
    };
    const head = await keeper.startOver(replay, actor, keptAs, extra);
    return {
      recovered: true,
      damage: replay.damage ?? { offset: 0, why: "the log is gone" },
      salvagedLines: replay.counted,
      leases: replay.leases.size,
      leasesFromIndex: onlyInIndex.length,
      nextToken: head.nextToken,
      keptAs,
    };
  });
}

function nothingToDo(replay: Replay): RecoveryReport {
  return {
    recovered: false,
    damage: null,
    salvagedLines: replay.counted,
    leases: replay.leases.size,
    leasesFromIndex: 0,
    nextToken: replay.head.nextToken,
    keptAs: null,
  };
}

/** The log itself is gone: the newest archived segment knows the most. */
async function fromArchive(store: Store, archived: readonly string[]): Promise<Replay> {
  const { files, digest } = store.platform;
  const newest = archived.filter((name) => name.endsWith(".jsonl")).at(-1);
  if (newest === undefined) return new Replay(NOWHERE);
  const fd = await files.open(`${store.layout.archive}/${newest}`, "read");
  try {
    return await replayLog(files, digest, fd, (await files.fstat(fd)).size, new Replay(), true);
  } finally {
    await files.close(fd);
  }
}

/** Being cautious: a lease whose line was lost still excludes others until it ends by itself. */
async function leasesOnlyInIndex(store: Store, replay: Replay): Promise<Lease[]> {
  const found: Lease[] = [];
  try {
    for await (const lease of store.index.all()) {
      const known = replay.touched.has(slotOf(lease)) || replay.endings.has(lease.leaseId);
      if (!known) found.push(lease);
    }
  } catch (error) {
    // Part of the index is damaged as well; what was read so far counts.
    if (!(error instanceof DamagedIndex) && !(error instanceof CotenantError)) throw error;
  }
  return found;
}
