import { bootOf } from "../kernel/time";
import { freshSuffix } from "../platform/hex";
import type { Descriptor, FileStat, Platform } from "../platform/platform";
import { AppliedFile, isContinued } from "./applied";
import type { CensusName } from "./census";
import { type Ground, groundOf, type Reach } from "./ground";
import type { IndexTree } from "./index-tree";
import type { Layout, Modes } from "./layout";
import type { AttachedLog } from "./log-file";
import { Overlay } from "./overlay";
import { type Head, MEMORY_MS, NOWHERE, Replay, replayLog } from "./replay";
import type { SyncMark } from "./sync-mark";

/** The ground that this process left last. */
interface Memory {
  readonly reach: Reach;
  readonly head: Head;
  readonly inode: number;
  readonly mtimeMs: number;
  readonly overlay: Overlay;
}

export interface IndexFollowerOptions {
  readonly modes: Modes;
  /**
   * How much of the log's end the index may lack. What comes and goes within it never touches the index; but everybody
   * has to read it. Where many ask at once it may lack more.
   */
  readonly indexLagBytes: number;
}

/** Where many ask at once, the index may lag by so many times as much; whoever comes from outside reads what it lacks. */
const CROWD = 32;

const NO_CENSUS: CensusName = { build: "", capacity: 0 };

/**
 * Lets the index follow the log, at once or when there is enough of it, and knows how far it has come. Nothing that
 * fails here fails an operation: the log has it, and an index can be built again.
 */
export class IndexFollower {
  readonly #applied: AppliedFile;
  #memory: Memory | null = null;

  constructor(
    private readonly platform: Platform,
    layout: Layout,
    private readonly index: IndexTree,
    private readonly mark: SyncMark,
    private readonly options: IndexFollowerOptions,
  ) {
    this.#applied = new AppliedFile(platform.files, platform.digest, layout, options.modes);
  }

  /** Whether there is, or was, an index at all. */
  async isThere(): Promise<boolean> {
    return (await this.#applied.read()) !== null;
  }

  /**
   * Where the log stands, by the index and what the index lacks: lines whose writers left that for later, or did not
   * live to do it. Null when the two do not fit together, and the whole log must be looked at.
   */
  async catchUp(log: AttachedLog, callers: number): Promise<Ground | null> {
    const applied = await this.#applied.read();
    if (applied === null || !isContinued(applied, log.stat, this.#bootId())) return null;
    const { census, head } = applied;
    await this.index.standOn(census, head.sequence);
    const { files, digest } = this.platform;
    const { size } = log.stat;
    const reach: Reach = { census, head };
    if (head.offset === size) return groundOf(log.fd, head, new Overlay(), reach);
    // Whoever wrote those lines may have got half way with them: counts that were read before it are too low now.
    this.index.forget();
    const known = this.#remembered(log, reach);
    const replay = await replayLog(files, digest, log.fd, size, new Replay(known?.head ?? head));
    // A torn tail, or bytes put in further up that pushed whole lines past where we look: the chain tells.
    if (replay.damage !== null) return null;
    const news = Overlay.of(replay);
    const overlay = known?.overlay.under(news) ?? news;
    // Also for whoever comes and writes nothing; what comes on top of it is not for remembering before it is written.
    const { inode, mtimeMs } = log.stat;
    this.#memory = { reach, head: replay.head, inode, mtimeMs, overlay };
    const ground = groundOf(log.fd, replay.head, overlay.under(new Overlay()), reach);
    if (size - head.offset <= this.#lagBytes(callers)) return ground;
    try {
      const index = await this.#apply(ground, reach);
      return { ...ground, overlay: new Overlay(), index };
    } catch {
      this.index.forget();
      return ground;
    }
  }

  #remembered({ stat }: AttachedLog, { census, head }: Reach): Memory | null {
    const memory = this.#memory;
    if (memory === null || memory.inode !== stat.inode || memory.reach.head.sum !== head.sum) return null;
    if (memory.reach.census.build !== census.build) return null;
    const isThere =
      stat.size === memory.head.offset ? stat.mtimeMs === memory.mtimeMs : stat.size > memory.head.offset;
    return isThere ? memory : null;
  }

  /** A new index, of the whole log. */
  async rebuild(replay: Replay, fd: Descriptor): Promise<Ground> {
    const { files, random, clock } = this.platform;
    const overlay = Overlay.of(replay, clock.wallMs() - MEMORY_MS);
    try {
      await this.#applied.reopen();
      await this.mark.reopen();
      // Until it is whole again, nobody must take what is there for an index.
      await this.#applied.write({
        bootId: "",
        head: NOWHERE,
        inode: 0,
        size: 0,
        mtimeMs: 0,
        census: NO_CENSUS,
      });
      await this.index.clear(freshSuffix(random), overlay.slots.size, overlay.facts.size);
      const census = await this.index.apply(overlay.withoutAbsent(), replay.head.sequence);
      const reach: Reach = { census, head: replay.head };
      await this.move(reach, await files.fstat(fd));
      await this.mark.advance(0);
      return groundOf(fd, replay.head, new Overlay(), reach);
    } catch {
      this.index.forget();
      return groundOf(fd, replay.head, overlay, null);
    }
  }

  /** After the append: the index at once, or when there is more of it. */
  async follow(ground: Ground, callers: number): Promise<void> {
    if (ground.index === null) return;
    try {
      await this.#follow(ground, ground.index, this.#lagBytes(callers));
    } catch {
      this.index.forget();
    }
  }

  async #follow(ground: Ground, index: Reach, lagBytes: number): Promise<void> {
    const { fd, head, overlay } = ground;
    if (head.offset - index.head.offset > lagBytes) {
      await this.#apply(ground, index);
      return;
    }
    const stat = await this.platform.files.fstat(fd);
    await this.move(index, stat);
    this.#memory = { reach: index, head, inode: stat.inode, mtimeMs: stat.mtimeMs, overlay };
  }

  /** Up to the log's end; null where that does not go: a damaged index is no reason to stop. */
  async bringUp(ground: Ground): Promise<Reach | null> {
    try {
      if (ground.index !== null) await this.#apply(ground, ground.index);
    } catch {
      this.index.forget();
    }
    const applied = await this.#applied.read();
    return applied?.head.sum === ground.head.sum ? applied : null;
  }

  /** Brings the index up to where the ground stands. */
  async #apply({ fd, base, overlay, head }: Ground, index: Reach): Promise<Reach> {
    if (index.head.offset === head.offset) return index;
    if (index.head.offset !== base.offset) {
      // Whoever found lines beyond the index may have got half way with them; and the file may be another one by now.
      this.index.forget();
      await this.#applied.reopen();
    }
    const census = await this.index.apply(overlay, head.sequence);
    const reach: Reach = { census, head };
    await this.move(reach, await this.platform.files.fstat(fd));
    this.#memory = null;
    return reach;
  }

  /** A write that was taken back has changed nothing but the file's time: no reason to rebuild the index. */
  async excuse({ fd, base, index }: Ground): Promise<void> {
    try {
      const stat = await this.platform.files.fstat(fd);
      const applied = await this.#applied.read();
      if (index !== null && stat.size === base.offset && applied?.size === base.offset)
        await this.move(index, stat);
    } catch {
      // The disk is full, or worse. The next writer looks for itself.
    }
  }

  /** The log's file looks like this now, and the index reaches that far. */
  async move({ census, head }: Reach, stat: FileStat): Promise<void> {
    const { inode, size, mtimeMs } = stat;
    await this.#applied.write({ bootId: this.#bootId(), head, inode, size, mtimeMs, census });
  }

  /** Making and removing files costs more than all else, and most of what many callers take is given back soon. */
  #lagBytes(callers: number): number {
    return this.options.indexLagBytes * (callers > 1 ? CROWD : 1);
  }

  #bootId(): string {
    return bootOf(this.platform.clock.clockId());
  }
}
