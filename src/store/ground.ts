import { CotenantError, fileFailure } from "../errors/cotenant-error";
import { bootOf } from "../kernel/time";
import type { Descriptor, FileStat, Platform } from "../platform/platform";
import { type Applied, AppliedFile, isContinued } from "./applied";
import type { LogActor } from "./envelope";
import type { IndexTree } from "./index-tree";
import type { Layout, Modes } from "./layout";
import { LogFile, type Pin } from "./log-file";
import { Overlay } from "./overlay";
import { type Head, NOWHERE, Replay, replayLog } from "./replay";
import { emptyCheckpoint, Segments, segmentName } from "./segments";
import type { SyncMark } from "./sync-mark";

/** What a critical section stands on: the log's end, and how to know what it adds up to. */
export interface Ground {
  readonly fd: Descriptor;
  /** Size of the log before this critical section added to it. */
  readonly onDisk: number;
  head: Head;
  /** What the log says beyond the index. */
  readonly overlay: Overlay;
  /** What the index holds, per kind of key. */
  readonly entries: Applied["entries"];
  /** False when the index could not be brought up to date: then the overlay holds the whole view. */
  readonly indexed: boolean;
}

export interface GroundKeeperOptions {
  readonly modes: Modes;
  /** A segment is closed once it is larger than this, and much larger than what it started from. */
  readonly rotateBytes: number;
}

/** Keeps log and index in step. Everything here happens under the mutex. */
export class GroundKeeper {
  readonly #platform: Platform;
  readonly #layout: Layout;
  readonly #options: GroundKeeperOptions;
  readonly #index: IndexTree;
  readonly #mark: SyncMark;
  readonly #log: LogFile;
  readonly #segments: Segments;
  readonly #applied: AppliedFile;

  constructor(
    platform: Platform,
    layout: Layout,
    index: IndexTree,
    mark: SyncMark,
    options: GroundKeeperOptions,
  ) {
    this.#platform = platform;
    this.#layout = layout;
    this.#options = options;
    this.#index = index;
    this.#mark = mark;
    this.#log = new LogFile(platform.files, layout, options.modes);
    this.#segments = new Segments(platform, layout, options.modes);
    this.#applied = new AppliedFile(platform.files, platform.digest, layout, options.modes);
  }

  /** PROTOCOL 6: trusts in O(1) what has only grown, reads what was added, verifies everything else once. */
  async stand(actor: LogActor): Promise<Ground> {
    const { files } = this.#platform;
    let log = (await this.#log.attach()) ?? (await this.#createFirst(actor));
    if ((await files.stat(this.#layout.syncFailed)) !== null) {
      await this.#leaveSuspect(log.fd, log.stat);
      log = (await this.#log.attach())!;
    }
    if (this.#mark.known === 0) await this.#mark.read();
    const applied = await this.#applied.read();
    const trusted = applied !== null && isContinued(applied, log.stat, this.#bootId());
    if (!trusted || !(await this.#index.isComplete(applied.entries))) return this.#rebuild(log.fd, log.stat);
    if (applied.head.offset !== log.stat.size) return this.#catchUp(log.fd, log.stat, applied);
    const { head, entries } = applied;
    return { fd: log.fd, onDisk: head.offset, head, entries, overlay: new Overlay(), indexed: true };
  }

  /** The same ground, from the log alone: the index was found damaged. */
  async standAnew(ground: Ground): Promise<Ground> {
    return this.#rebuild(ground.fd, await this.#platform.files.fstat(ground.fd));
  }

  pin(): Pin {
    return this.#log.pin();
  }

  /**
   * Appends what `ground.head` and `ground.overlay` already stand for. After the append nothing fails the
   * operation: the log has it, and the next writer brings the index up to it.
   */
  async append(ground: Ground, text: string, actor: LogActor): Promise<void> {
    await this.#log.append(ground.fd, text, ground.onDisk);
    if (ground.indexed) {
      try {
        await this.#apply(ground, await this.#platform.files.fstat(ground.fd));
      } catch {
        this.#index.forget();
      }
    }
    if (ground.head.offset < Math.max(this.#options.rotateBytes, ground.head.checkpointEnd * 8)) return;
    try {
      await this.rotate(ground, actor);
    } catch {
      // The log is whole and goes on growing; the next writer tries again.
    }
  }

  async rotate(ground: Ground, actor: LogActor): Promise<void> {
    const { files, digest } = this.#platform;
    const { fd, head } = ground;
    await files.datasync(fd);
    await this.#mark.advance(head.sequence);
    const replay = await replayLog(files, digest, fd, head.offset, new Replay());
    if (replay.damage !== null || replay.head.sum !== head.sum)
      throw new Error("the log changed under rotation");
    const applied = await this.#applied.read();
    const checkpoint = { replay, segment: head.segment + 1, nextToken: head.nextToken, extra: {} };
    await this.#segments.replace(checkpoint, actor, segmentName(head.segment));
    const log = (await this.#log.attach())!;
    const fresh = await replayLog(files, digest, log.fd, log.stat.size, new Replay());
    // The view is the same, so the index stays as it is; unless it was behind, and then the next one rebuilds.
    if (applied?.head.sum === head.sum) await this.#moveApplied(fresh.head, log.stat, applied.entries);
  }

  /**
   * PROTOCOL 7: after a failed sync the kernel may drop the pages and say all is well from then on. The lines
   * go to a new file, synced, or nobody writes.
   */
  async afterFailedSync(): Promise<void> {
    const log = await this.#log.attach();
    if (log === null || (await this.#platform.files.stat(this.#layout.syncFailed)) === null) return;
    await this.#leaveSuspect(log.fd, log.stat);
  }

  /** Puts a new segment made from `replay` in the place of the log, keeping the old file under `keptAs`. */
  async startOver(
    replay: Replay,
    actor: LogActor,
    keptAs: string | null,
    extra: Record<string, unknown>,
  ): Promise<Head> {
    const { files, digest } = this.#platform;
    const segment = replay.head.segment + 1;
    const checkpoint = { replay, segment, nextToken: replay.head.nextToken, extra };
    await this.#segments.replace(checkpoint, actor, keptAs);
    await files.unlink(this.#layout.syncFailed);
    const log = (await this.#log.attach())!;
    const fresh = await replayLog(files, digest, log.fd, log.stat.size, new Replay());
    await this.#rebuildFrom(fresh, log.fd);
    await this.#mark.advance(fresh.head.sequence);
    return fresh.head;
  }

  /** The log as it is, damaged or not; null when there is none. */
  async attach(): Promise<{ fd: Descriptor; stat: FileStat } | null> {
    return this.#log.attach();
  }

  async makeDirectories(): Promise<void> {
    const { files } = this.#platform;
    const { directory } = this.#options.modes;
    const { root, archive, index, queue, heartbeat, locks, secrets } = this.#layout;
    try {
      for (const path of [root, archive, index, queue, heartbeat, locks])
        await files.makeDirectory(path, directory);
      // Where several users share it, each keeps a private directory of its own in there.
      const shared = (directory & 0o070) !== 0;
      await files.makeDirectory(secrets, shared ? directory | 0o1000 : directory);
    } catch (error) {
      throw fileFailure(error, "making the control plane", root);
    }
  }

  // --- inside ---------------------------------------------------------------------------------------------

  async #createFirst(actor: LogActor): Promise<{ fd: Descriptor; stat: FileStat }> {
    const { files } = this.#platform;
    const archived = (await files.readDirectory(this.#layout.archive)) ?? [];
    if (archived.length > 0 || (await this.#applied.read()) !== null) {
      // A log that was there and is gone: starting over would hand out old fencing tokens again.
      throw new CotenantError("E_LOG_CORRUPT", "the log is gone, but there was one", {
        data: { path: this.#layout.log },
      });
    }
    await this.makeDirectories();
    // The control plane itself must be on the disk before anything in it is promised.
    await files.syncDirectory(this.#layout.root.slice(0, this.#layout.root.lastIndexOf("/")) || "/");
    await this.#segments.replace(emptyCheckpoint(new Replay()), actor, null);
    return (await this.#log.attach())!;
  }

  /** Lines that their writer appended and did not live to apply. */
  async #catchUp(fd: Descriptor, stat: FileStat, applied: Applied): Promise<Ground> {
    const { files, digest } = this.#platform;
    const replay = await replayLog(files, digest, fd, stat.size, new Replay(applied.head));
    await this.#settleDamage(fd, stat, replay);
    const ground = groundOf(fd, replay, applied.entries, true);
    try {
      await this.#apply(ground, await files.fstat(fd));
      return { ...ground, overlay: new Overlay() };
    } catch {
      this.#index.forget();
      return ground;
    }
  }

  /** From nothing: another boot, a changed file, a lost or damaged index. */
  async #rebuild(fd: Descriptor, stat: FileStat): Promise<Ground> {
    const { files, digest } = this.#platform;
    const replay = await replayLog(files, digest, fd, stat.size, new Replay());
    await this.#settleDamage(fd, stat, replay);
    // Whoever made the log may have died before it synced the directory it made it in.
    await files.syncDirectory(this.#layout.root);
    return this.#rebuildFrom(replay, fd);
  }

  async #rebuildFrom(replay: Replay, fd: Descriptor): Promise<Ground> {
    const ground = groundOf(fd, replay, {}, true);
    try {
      await this.makeDirectories();
      await this.#applied.reopen();
      await this.#mark.reopen();
      // Until it is whole again, nobody must take what is there for an index.
      await this.#applied.write({ bootId: "", head: NOWHERE, inode: 0, mtimeMs: 0, entries: {} });
      await this.#index.clear();
      await this.#apply(ground, await this.#platform.files.fstat(fd));
      await this.#mark.advance(0);
      return { ...ground, overlay: new Overlay() };
    } catch {
      this.#index.forget();
      return { ...ground, indexed: false };
    }
  }

  async #apply(ground: Ground, stat: FileStat): Promise<void> {
    const entries: Record<string, number> = { ...ground.entries } as Record<string, number>;
    for (const [slot, lease] of ground.overlay.slots) {
      const kind = slot.slice(0, slot.indexOf(":"));
      const step =
        lease === null ? -Number(await this.#index.drop(slot)) : Number(await this.#index.put(lease));
      entries[kind] = Math.max(0, (entries[kind] ?? 0) + step);
    }
    for (const ending of ground.overlay.endings.values()) await this.#index.putEnding(ending);
    await this.#moveApplied(ground.head, stat, entries);
  }

  async #moveApplied(head: Head, stat: FileStat, entries: Applied["entries"]): Promise<void> {
    const { inode, mtimeMs } = stat;
    await this.#applied.write({ bootId: this.#bootId(), head, inode, mtimeMs, entries });
  }

  /** PROTOCOL 5: an unacknowledged tail is set aside; damage below what was acknowledged stops writers. */
  async #settleDamage(fd: Descriptor, stat: FileStat, replay: Replay): Promise<void> {
    const { damage } = replay;
    if (damage === null) return;
    const { files, clock } = this.#platform;
    const acknowledged = Math.max(replay.highestSynced, await this.#mark.read());
    if (acknowledged >= damage.sequence) {
      throw new CotenantError("E_LOG_CORRUPT", `the log is damaged at byte ${damage.offset}: ${damage.why}`, {
        data: { offset: damage.offset, sequence: damage.sequence, acknowledged, path: this.#layout.log },
      });
    }
    try {
      const aside = `${this.#layout.archive}/torn-${fileTime(clock.wallMs())}-${damage.offset}.jsonl`;
      await this.#copyTail(fd, damage.offset, stat.size, aside);
      await files.truncate(fd, damage.offset);
    } catch (error) {
      throw fileFailure(error, "setting aside the log's torn tail", this.#layout.log);
    }
  }

  async #copyTail(fd: Descriptor, from: number, to: number, target: string): Promise<void> {
    const { files } = this.#platform;
    const aside = await files.open(target, "append", this.#options.modes.file);
    try {
      for (let at = from; at < to; ) {
        const bytes = await files.read(fd, at, Math.min(1 << 20, to - at));
        if (bytes.length === 0) break;
        at += await files.append(aside, bytes);
      }
      await files.sync(aside);
    } finally {
      await files.close(aside);
    }
  }

  async #leaveSuspect(fd: Descriptor, stat: FileStat): Promise<void> {
    const { files, digest } = this.#platform;
    try {
      const replay = await replayLog(files, digest, fd, stat.size, new Replay());
      await this.#settleDamage(fd, stat, replay);
      await this.#segments.copy(fd, replay.head, `suspect-${segmentName(replay.head.segment)}`);
      await files.unlink(this.#layout.syncFailed);
    } catch (error) {
      throw fileFailure(error, "moving the log to a file that can be synced", this.#layout.log);
    }
  }

  #bootId(): string {
    return bootOf(this.#platform.clock.clockId());
  }
}

function groundOf(fd: Descriptor, replay: Replay, entries: Applied["entries"], indexed: boolean): Ground {
  const { head } = replay;
  return { fd, onDisk: head.offset, head, entries, overlay: Overlay.of(replay), indexed };
}

/** An instant as part of a file name. */
export function fileTime(wallMs: number): string {
  return new Date(wallMs).toISOString().replace(/[:.]/g, "-");
}
