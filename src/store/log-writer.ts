import { CotenantError, during } from "../errors/cotenant-error";
import type { Descriptor, Platform } from "../platform/platform";
import { acknowledgedDamage, corrupt } from "./damage";
import { decodeLine, type LogActor } from "./envelope";
import { type Ground, groundOf } from "./ground";
import { IndexFollower, type IndexFollowerOptions } from "./index-follower";
import type { IndexTree } from "./index-tree";
import { fileTime, type Layout } from "./layout";
import { type AttachedLog, LogFile, type Pin } from "./log-file";
import { Overlay } from "./overlay";
import { eachLine, type Head, Replay, replayLog } from "./replay";
import { emptyCheckpoint, Segments, segmentName } from "./segments";
import { failedElsewhere, Suspicion } from "./suspicion";
import type { SyncMark } from "./sync-mark";

export interface LogWriterOptions extends IndexFollowerOptions {
  /** A segment is closed once it is larger than this, and much larger than what it started from. */
  readonly rotateBytes: number;
}

/** Keeps log and index in step. Everything here happens under the mutex. */
export class LogWriter {
  readonly suspicion: Suspicion;
  readonly #index: IndexFollower;
  readonly #log: LogFile;
  readonly #segments: Segments;

  constructor(
    private readonly platform: Platform,
    private readonly layout: Layout,
    index: IndexTree,
    private readonly mark: SyncMark,
    private readonly options: LogWriterOptions,
  ) {
    this.#index = new IndexFollower(platform, layout, index, mark, options);
    this.suspicion = new Suspicion(platform.files, layout, options.modes);
    this.#log = new LogFile(platform.files, layout, options.modes);
    this.#segments = new Segments(platform, layout, options.modes);
  }

  /** PROTOCOL 6: trusts in O(1) what has only grown, reads what was added, verifies everything else once. */
  async stand(actor: LogActor, callers = 1): Promise<Ground> {
    let log = (await this.#log.attach()) ?? (await this.#createFirst(actor));
    if (log.isReopened) await this.mark.reload();
    if (await this.suspicion.isRaised()) log = await this.#leaveSuspect(log);
    const ground = await this.#index.catchUp(log, callers);
    if (ground === null) return this.#rebuild(log);
    // More than there is was known to be durable: of another log that had this place, or of this one.
    const isShort = this.mark.known > ground.head.sequence;
    return isShort && (await this.mark.reload()) > ground.head.sequence ? this.#rebuild(log) : ground;
  }

  /** The same ground, from the log alone: the index was found damaged. Mends it for the next one. */
  async standAnew(ground: Ground): Promise<Ground> {
    const { fd } = ground;
    const stat = await this.platform.files.fstat(fd);
    const replay = await this.#verify({ fd, stat });
    await this.#index.rebuild(replay, fd);
    return groundOf(fd, replay.head, Overlay.of(replay), null);
  }

  /** The next one who stands on it opens the log anew. */
  close(): Promise<void> {
    return this.#log.detach();
  }

  pin(): Pin {
    return this.#log.pin();
  }

  /**
   * Appends what `ground.head` and `ground.overlay` already stand for. After the append nothing fails the
   * operation: the log has it, and the next writer brings the index up to it.
   */
  async append(ground: Ground, bytes: Uint8Array, actor: LogActor, callers = 1): Promise<void> {
    const { fd, base } = ground;
    try {
      await this.#log.append(fd, bytes, base.offset);
    } catch (error) {
      await this.#index.excuse(ground);
      throw error;
    }
    await this.#index.follow(ground, callers);
    if (ground.head.offset < Math.max(this.options.rotateBytes, ground.head.checkpointEnd * 8)) return;
    try {
      await this.rotate(ground, actor);
    } catch {
      // The log is whole and goes on growing; the next writer tries again.
    }
  }

  async rotate(ground: Ground, actor: LogActor): Promise<void> {
    const { files, digest } = this.platform;
    const { fd, head } = ground;
    try {
      await files.datasync(fd);
    } catch (error) {
      // Said once, to us: whoever syncs next would hear that all is well.
      await this.suspicion.raise();
      throw error;
    }
    // What another process's sync has lost meanwhile, ours did not write. The checkpoint would carry the leases, but
    // what goes to the archive is the only record of how they came to be.
    if (await this.suspicion.isRaised()) throw failedElsewhere();
    await this.mark.advance(head.sequence);
    const replay = await replayLog(files, digest, fd, head.offset, new Replay());
    if (replay.damage !== null) throw corrupt(replay.damage, this.layout.log);
    if (replay.head.sum !== head.sum) throw new Error("the log changed under rotation");
    const reach = await this.#index.bringUp(ground);
    const checkpoint = { replay, segment: head.segment + 1, nextToken: head.nextToken, extra: {} };
    await this.#segments.replace(checkpoint, actor, segmentName(head.segment));
    const log = (await this.#log.attach())!;
    const fresh = await replayLog(files, digest, log.fd, log.stat.size, new Replay());
    // The view is the same, so the index stays as it is; unless it was behind, and then the next one rebuilds.
    if (reach !== null) await this.#index.move({ census: reach.census, head: fresh.head }, log.stat);
  }

  /**
   * PROTOCOL 7: after a failed sync the kernel may drop the pages and say all is well from then on. The lines
   * go to a new file, synced, or nobody writes. False when the line that the caller relies on did not make it.
   */
  async moveToSafety(line: { readonly sum: string }): Promise<boolean> {
    let log = await this.#log.attach();
    if (log === null) return false;
    if (await this.suspicion.isRaised()) log = await this.#leaveSuspect(log);
    const { files, digest } = this.platform;
    let isThere = false;
    const ending = `"sum":"${line.sum}"}`;
    await eachLine(files, log.fd, 0, log.stat.size, (text) => {
      // Its end alone may be there, and the sector before it lost.
      isThere ||= text.endsWith(ending) && decodeLine(digest, text) !== null;
    });
    return isThere;
  }

  /** Puts a new segment made from `replay` in the place of the log, keeping the old file under `keptAs`. */
  async startOver(
    replay: Replay,
    actor: LogActor,
    keptAs: string | null,
    extra: Record<string, unknown>,
  ): Promise<Head> {
    const { files, digest } = this.platform;
    const segment = replay.head.segment + 1;
    const checkpoint = { replay, segment, nextToken: replay.head.nextToken, extra };
    await this.#segments.replace(checkpoint, actor, keptAs);
    await this.suspicion.lay();
    const log = (await this.#log.attach())!;
    const fresh = await replayLog(files, digest, log.fd, log.stat.size, new Replay());
    await this.#index.rebuild(fresh, log.fd);
    await this.mark.advance(fresh.head.sequence);
    return fresh.head;
  }

  /** The log as it is, damaged or not; null when there is none. */
  async attach(): Promise<AttachedLog | null> {
    return this.#log.attach();
  }

  async makeDirectories(): Promise<void> {
    const { files } = this.platform;
    const { directory } = this.options.modes;
    const { root, archive, index, queue, heartbeat, locks, secrets } = this.layout;
    await during("making the control plane", root, async () => {
      for (const path of [root, archive, index, queue, heartbeat, locks])
        await files.makeDirectory(path, directory);
      // Where several users share it, each keeps a private directory of its own in there.
      const shared = (directory & 0o070) !== 0;
      await files.makeDirectory(secrets, shared ? directory | 0o1000 : directory);
    });
  }

  // --- inside ---------------------------------------------------------------------------------------------

  async #createFirst(actor: LogActor): Promise<AttachedLog> {
    if (await this.hasBeen()) {
      // A log that was there and is gone: starting over would hand out old fencing tokens again.
      throw new CotenantError("E_LOG_CORRUPT", "the log is gone, but there was one", {
        data: { path: this.layout.log },
      });
    }
    await this.makeDirectories();
    await this.#settleRoot();
    await this.#segments.replace(emptyCheckpoint(new Replay()), actor, null);
    return (await this.#log.attach())!;
  }

  /** The control plane itself must be on the disk before anything in it is promised. */
  async #settleRoot(): Promise<void> {
    const { files } = this.platform;
    const { root } = this.layout;
    try {
      await files.syncDirectory(root.slice(0, root.lastIndexOf("/")) || "/");
    } catch (error) {
      // As with every failed sync, the next one would say that all is well. Renamed there and back, the name
      // is one that has not been given up on.
      await files.rename(root, `${root}.new`);
      await files.rename(`${root}.new`, root);
      throw error;
    }
  }

  /** Whether there are traces of an earlier log. */
  async hasBeen(): Promise<boolean> {
    const archived = (await this.platform.files.readDirectory(this.layout.archive)) ?? [];
    return archived.length > 0 || (await this.#index.isThere()) || (await this.mark.reload()) > 0;
  }

  /** From nothing: another boot, a changed file, a lost or damaged index. */
  async #rebuild(log: AttachedLog): Promise<Ground> {
    // Some may have been lost with the power.
    await this.makeDirectories();
    const certain = (await this.#segments.isNameUncertain()) ? await this.#leaveSuspect(log) : log;
    await this.mark.reload();
    return this.#index.rebuild(await this.#verify(certain), certain.fd);
  }

  /** Reads the whole log. Stops at damage to what was acknowledged; a torn tail is gone afterwards. */
  async #verify(log: Pick<AttachedLog, "fd" | "stat">): Promise<Replay> {
    const { files, digest } = this.platform;
    const replay = await replayLog(files, digest, log.fd, log.stat.size, new Replay());
    const damage = acknowledgedDamage(replay, await this.mark.read());
    if (damage !== null) throw corrupt(damage, this.layout.log);
    await this.#setAside(log, replay);
    return replay;
  }

  async #setAside({ fd, stat }: Pick<AttachedLog, "fd" | "stat">, { damage }: Replay): Promise<void> {
    if (damage === null) return;
    const { files } = this.platform;
    await during("setting aside the log's torn tail", this.layout.log, async () => {
      const aside = `${this.layout.archive}/torn-${fileTime(this.#now())}-${damage.offset}.jsonl`;
      await this.#copyTail(fd, damage.offset, stat.size, aside);
      await files.truncate(fd, damage.offset);
    });
  }

  async #copyTail(fd: Descriptor, from: number, to: number, target: string): Promise<void> {
    const { files } = this.platform;
    const aside = await files.open(target, "append", this.options.modes.file);
    try {
      for (let at = from; at < to; ) {
        const bytes = await files.read(fd, at, Math.min(1 << 20, to - at));
        if (bytes.length === 0) break;
        for (let written = 0; written < bytes.length; )
          written += await files.append(aside, bytes.subarray(written));
        at += bytes.length;
      }
      await files.sync(aside);
    } finally {
      await files.close(aside);
    }
  }

  async #leaveSuspect(log: AttachedLog): Promise<AttachedLog> {
    await during("moving the log to a file that can be synced", this.layout.log, async () => {
      const { head } = await this.#verify(log);
      await this.#segments.copy(log.fd, head, `suspect-${segmentName(head.segment)}`);
      await this.suspicion.lay();
    });
    return (await this.#log.attach())!;
  }

  #now(): number {
    return this.platform.clock.wallMs();
  }
}
