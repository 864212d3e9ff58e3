import { fileFailure } from "../errors/cotenant-error";
import type { LeaseId } from "../kernel/ids";
import type { Ended, Lease, Slot } from "../kernel/lease";
import { bootOf } from "../kernel/time";
import type { Platform } from "../platform/platform";
import { type Applied, decodeApplied } from "./applied";
import { gather, gatherEndings, type Needs } from "./gather";
import { DamagedIndex, type IndexTree } from "./index-tree";
import type { Layout } from "./layout";
import { Overlay } from "./overlay";
import { type Damage, type Head, NOWHERE, Replay, replayLog } from "./replay";

/** One state that the log was in, or the part of it that was asked for. */
export interface Snapshot {
  readonly leases: ReadonlyMap<Slot, Lease>;
  readonly endings: ReadonlyMap<LeaseId, Ended>;
  readonly head: Head;
  /** Damage in the log that writers would stop at. Readers answer from every whole line. */
  readonly damage: Damage | null;
}

const ATTEMPTS = 8;

/**
 * Reads without the mutex and without writing. In this order, or states appear that never were (PROTOCOL 9):
 * `applied`, then the index, then the log's tail past `applied`, laid over what the index said.
 */
export class Reader {
  readonly #platform: Platform;
  readonly #layout: Layout;
  readonly #index: IndexTree;

  constructor(platform: Platform, layout: Layout, index: IndexTree) {
    this.#platform = platform;
    this.#layout = layout;
    this.#index = index;
  }

  async snapshot(needs: Needs): Promise<Snapshot> {
    try {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const applied = await this.#applied();
        if (applied === null) break;
        const snapshot = await this.#throughIndex(applied, needs);
        if (snapshot !== null) return snapshot;
      }
      return await this.#fromLogAlone();
    } catch (error) {
      throw fileFailure(error, "reading the store", this.#layout.root);
    }
  }

  async #applied(): Promise<Applied | null> {
    const { files, digest, clock } = this.#platform;
    const applied = decodeApplied(digest, await files.readFile(this.#layout.applied));
    if (applied === null || applied.bootId !== bootOf(clock.clockId())) return null;
    return (await this.#index.isComplete(applied.entries)) ? applied : null;
  }

  /** Null when the ground moved meanwhile: start over. */
  async #throughIndex(applied: Applied, needs: Needs): Promise<Snapshot | null> {
    const { files, digest } = this.#platform;
    if ((await files.stat(this.#layout.log)) === null) return null;
    const fd = await files.open(this.#layout.log, "read");
    try {
      const opened = await files.fstat(fd);
      if (opened.inode !== applied.inode || opened.size < applied.head.offset) return null;
      const nothing = new Overlay();
      const found = await gather(this.#index, needs, nothing);
      const foundEndings = await gatherEndings(this.#index, needs, nothing);
      const { size } = await files.fstat(fd);
      // Same size, other time: somebody rewrote it in place. The log itself decides then.
      if (size === applied.head.offset && opened.mtimeMs !== applied.mtimeMs) return null;
      const replay = await replayLog(files, digest, fd, size, new Replay(applied.head));
      const after = await this.#applied();
      if (after === null || after.head.segment !== applied.head.segment) return null;
      if (after.head.offset < applied.head.offset) return null;
      const overlay = Overlay.of(replay);
      overlay.layOver(found);
      for (const [id, record] of overlay.endings) foundEndings.set(id, record.ended);
      // A torn end is a writer at work, or one that died: not damage to a reader.
      return { leases: found, endings: foundEndings, head: replay.head, damage: null };
    } catch (error) {
      if (error instanceof DamagedIndex) return null;
      throw error;
    } finally {
      await files.close(fd);
    }
  }

  async #fromLogAlone(): Promise<Snapshot> {
    const { files, digest } = this.#platform;
    if ((await files.stat(this.#layout.log)) === null) {
      return { leases: new Map(), endings: new Map(), head: NOWHERE, damage: null };
    }
    const fd = await files.open(this.#layout.log, "read");
    try {
      const { size } = await files.fstat(fd);
      const replay = await replayLog(files, digest, fd, size, new Replay(), true);
      const endings = new Map([...replay.endings].map(([id, record]) => [id, record.ended]));
      const acknowledged = replay.damage !== null && replay.highestSynced >= replay.damage.sequence;
      return {
        leases: replay.leases,
        endings,
        head: replay.head,
        damage: acknowledged ? replay.damage : null,
      };
    } finally {
      await files.close(fd);
    }
  }
}
