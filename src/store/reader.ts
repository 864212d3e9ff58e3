import { during } from "../errors/cotenant-error";
import type { FactName, FactRecord } from "../kernel/facts";
import type { LeaseId } from "../kernel/ids";
import type { Ended, Lease, Slot } from "../kernel/lease";
import { bootOf } from "../kernel/time";
import type { Descriptor, Platform } from "../platform/platform";
import { type Applied, AppliedFile } from "./applied";
import { acknowledgedDamage, withoutReplaced } from "./damage";
import { gather, gatherEndings, gatherFacts, isWanted, type Needs } from "./gather";
import { IndexTree } from "./index-tree";
import { type Layout, PRIVATE } from "./layout";
import { Overlay } from "./overlay";
import { type Damage, type Head, NOWHERE, Replay, replayLog } from "./replay";
import { SyncMark } from "./sync-mark";
import { DamagedIndex } from "./tree-files";

/** One state that the log was in, or the part of it that was asked for. */
export interface Snapshot {
  readonly leases: ReadonlyMap<Slot, Lease>;
  readonly endings: ReadonlyMap<LeaseId, Ended>;
  readonly facts: ReadonlyMap<FactName, FactRecord>;
  readonly head: Head;
  /**
   * False when the newest lines may still be taken back by the writer at work: nothing may be acknowledged on
   * the strength of them.
   */
  readonly isSettled: boolean;
  /** Damage in the log that writers would stop at. Readers answer from every whole line. */
  readonly damage: Damage | null;
}

/** What lies beyond the index, up to a line that no writer takes back any more. */
interface Tail {
  readonly inode: number;
  /** Which state of the index it lies over. */
  readonly build: string;
  readonly appliedSum: string;
  readonly head: Head;
  readonly overlay: Overlay;
}

const ATTEMPTS = 8;
const GONE: Damage = {
  offset: 0,
  sequence: 1,
  why: "the log is gone",
  inCheckpoint: true,
  isWholeLine: false,
};

/**
 * Reads without the mutex and without writing. In this order, or states appear that never were (PROTOCOL 9):
 * `applied`, then the index, then the log's tail past `applied`, laid over what the index said.
 */
export class Reader {
  /** Not the writer's: what that one remembers of the disk is none of ours, nor the other way round. */
  readonly #index: IndexTree;
  readonly #appliedFile: AppliedFile;
  /** Read once: whoever asks often need not read the same lines each time. */
  #tail: Tail | null = null;

  constructor(
    private readonly platform: Platform,
    private readonly layout: Layout,
  ) {
    this.#index = new IndexTree(platform.files, platform.digest, layout, PRIVATE);
    this.#appliedFile = new AppliedFile(platform.files, platform.digest, layout, PRIVATE);
  }

  /** It may be used again: what it needs is opened when it is needed. */
  async close(): Promise<void> {
    await this.#index.close();
  }

  async snapshot(needs: Needs): Promise<Snapshot> {
    return during("reading the store", this.layout.root, async () => {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const applied = await this.#applied();
        if (applied === "none") break;
        const snapshot = applied === null ? null : await this.#throughIndex(applied, needs);
        if (snapshot !== null) return snapshot;
        this.#tail = null;
      }
      return await this.#fromLogAlone(needs);
    });
  }

  /** Null when it is being written at this moment; "none" when there is no index to go by. */
  async #applied(): Promise<Applied | null | "none"> {
    const { files, clock } = this.platform;
    const bytes = await files.readFile(this.layout.applied);
    if (bytes === null) return "none";
    try {
      const applied = this.#appliedFile.decode(bytes);
      return applied === null || applied.bootId === bootOf(clock.clockId()) ? applied : "none";
    } catch {
      // Of a newer version. The log may still be one that we can read.
      return "none";
    }
  }

  /** Null when the ground moved meanwhile: start over. */
  async #throughIndex(applied: Applied, needs: Needs): Promise<Snapshot | null> {
    const { files } = this.platform;
    const fd = await this.#openLog();
    if (fd === null) return null;
    try {
      const opened = await files.fstat(fd);
      if (opened.inode !== applied.inode || opened.size < applied.size) return null;
      const { sequence, nextToken } = applied.head;
      await this.#index.standOn(applied.census, sequence, nextToken);
      this.#index.forget();
      const nothing = new Overlay();
      const found = await gather(this.#index, needs, nothing);
      const foundEndings = await gatherEndings(this.#index, needs, nothing);
      const foundFacts = await gatherFacts(this.#index, needs, nothing);
      const { size } = await files.fstat(fd);
      // Same size, other time: somebody rewrote it in place. The log itself decides then.
      if (size === applied.size && opened.mtimeMs !== applied.mtimeMs) return null;
      const tail = await this.#readTail(fd, size, applied);
      if (tail === null) return null;
      const after = await this.#applied();
      if (after === null || after === "none" || !isSameIndex(after, applied)) return null;
      const { overlay, head } = tail;
      const isSettled = after.size >= head.offset;
      if (isSettled) this.#tail = tail;
      overlay.layOver(found);
      for (const [id, record] of overlay.endings) foundEndings.set(id, record.ended);
      overlay.layFactsOver(foundFacts, (name) => isWanted(name, needs));
      const said = { leases: found, endings: foundEndings, facts: foundFacts };
      return { ...said, head, isSettled, damage: null };
    } catch (error) {
      if (error instanceof DamagedIndex) return null;
      throw error;
    } finally {
      await files.close(fd);
    }
  }

  async #openLog(): Promise<Descriptor | null> {
    try {
      return await this.platform.files.open(this.layout.log, "read");
    } catch (error) {
      if ((error as { code?: unknown }).code === "ENOENT") return null;
      throw error;
    }
  }

  /** What the log says beyond the index: only what was added since the last time is read. Null: it is not what it was. */
  async #readTail(fd: Descriptor, size: number, { inode, head, census }: Applied): Promise<Tail | null> {
    const { files, digest } = this.platform;
    const known = this.#tail;
    const isKnown =
      known !== null &&
      known.inode === inode &&
      known.build === census.build &&
      known.appliedSum === head.sum &&
      known.head.offset <= size;
    const from = isKnown ? known.head : head;
    if (isKnown && from.offset === size) return known;
    const replay = await replayLog(files, digest, fd, size, new Replay(from));
    // A torn end is a writer at work, or one that died. A line that ends and does not follow is something else.
    if (replay.damage?.isWholeLine === true) return null;
    const news = Overlay.of(replay);
    const overlay = isKnown ? known.overlay.under(news) : news;
    return { inode, build: census.build, appliedSum: head.sum, head: replay.head, overlay };
  }

  async #fromLogAlone(needs: Needs): Promise<Snapshot> {
    const { files, digest } = this.platform;
    const mark = await new SyncMark(files, digest, this.layout, PRIVATE).reload();
    if ((await files.stat(this.layout.log)) === null) return this.#withoutLog(mark, needs);
    const fd = await files.open(this.layout.log, "read");
    try {
      const { size } = await files.fstat(fd);
      const replay = await replayLog(files, digest, fd, size, new Replay());
      const damage = acknowledgedDamage(replay, mark);
      // An unacknowledged tail is nobody's; beyond real damage there are lines that somebody relies on.
      const whole = damage === null ? replay : await replayLog(files, digest, fd, size, new Replay(), true);
      const leases = damage === null ? whole.leases : withoutReplaced([...whole.leases.values()]);
      const endings = new Map([...whole.endings].map(([id, record]) => [id, record.ended]));
      const facts = new Map([...whole.facts].filter(([name]) => isWanted(name, needs)));
      return { leases, endings, facts, head: whole.head, isSettled: false, damage };
    } finally {
      await files.close(fd);
    }
  }

  async #withoutLog(mark: number, needs: Needs): Promise<Snapshot> {
    const { files } = this.platform;
    const archived = (await files.readDirectory(this.layout.archive)) ?? [];
    const wasThere = archived.length > 0 || mark > 0 || (await files.stat(this.layout.applied)) !== null;
    // Not gone, but made for the first time while we looked for its traces.
    if (wasThere && (await files.stat(this.layout.log)) !== null) return this.#fromLogAlone(needs);
    const empty = {
      leases: new Map(),
      endings: new Map(),
      facts: new Map(),
      head: NOWHERE,
      isSettled: true,
    };
    return { ...empty, damage: wasThere ? GONE : null };
  }
}

/** Of the same build, and not of an earlier state: a rebuild takes everything away and brings it back. */
function isSameIndex(after: Applied, before: Applied): boolean {
  return (
    after.head.segment === before.head.segment &&
    after.inode === before.inode &&
    after.census.build === before.census.build &&
    after.head.offset >= before.head.offset
  );
}
