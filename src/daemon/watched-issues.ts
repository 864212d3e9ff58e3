import * as fs from "node:fs";
import type { Watched, WatchedPlace, WatchedQuestion } from "../coordinator/watched";
import { networkFileSystemName } from "../platform/node/network-file-systems";
import { Cookies } from "./cookies";
import { IssueFolderWatch } from "./issue-folder-watch";
import { randomHex } from "./place";

/** Worktrees that are watched at a time; the one that was asked about least lately makes room. */
const MOST_FOLDERS = 16;
/** Of all folders together. A watch costs this process 1.4 KB, and the kernel about one. */
const MOST_WATCHES = 20_000;
/** More are not named: to look at everything is as quick. */
const MOST_CHANGED = 2_000;
/** Caches that something is known of. */
const MOST_CACHES = 64;
/** When a folder is tried again that could not be watched. */
const TRY_AGAIN_MS = 5_000;

type Standing = "building" | "sure" | "unsure";

interface Folder {
  readonly watch: IssueFolderWatch;
  standing: Standing;
  why: string | null;
  sinceMs: number;
  /** What changed before is not known. */
  readyTick: number;
}

interface Known {
  readonly cache: string;
  readonly tick: number;
}

/**
 * Which issues have changed since a cache of them was true, for clients that would have to look at each of thousands of files
 * otherwise. Nothing of an issue is kept here, and nothing is answered that was not certain: then the client looks itself.
 */
export class WatchedIssues {
  readonly #cookies: Cookies;
  readonly #queueLength: number | null;
  readonly #folders = new Map<string, Folder>();
  readonly #known = new Map<string, Known>();
  #epoch = randomHex(8);
  #tick = 0;
  #isOpen = false;
  /** Events since this process last saw the kernel's queue empty. */
  #inARow = 0;
  #answers = 0;

  /** `queueLength`: how many events the kernel keeps for a process; null where nothing is to be trusted. */
  constructor(cookieFolder: string, queueLength: number | null = kernelQueueLength()) {
    this.#cookies = new Cookies(cookieFolder);
    this.#queueLength = queueLength;
  }

  status() {
    const folders = [...this.#folders].map(([folder, { watch, standing, why }]) => ({
      folder,
      standing,
      issues: watch.issues,
      why,
    }));
    return { watches: this.#watches, answers: this.#answers, folders };
  }

  /** Null: look at everything. */
  async ask({ path, folders }: WatchedQuestion): Promise<Watched | null> {
    if (this.#queueLength === null || folders.length === 0 || folders.length > 2) return null;
    const asked = folders.map((folder) => this.#folderOf(folder));
    if (asked.some(({ standing }) => standing !== "sure")) return null;
    const epoch = this.#epoch;
    if (!(await this.#cookies.passed()) || epoch !== this.#epoch) return null;
    if (asked.some(({ standing }) => standing !== "sure")) return null;
    for (const { watch } of asked) watch.tidy();
    this.#answers++;
    return { epoch, tick: this.#tick, ...this.#since(path, asked) };
  }

  /** That cache was true at some time after the answer with this tick. */
  tell({ path, folders }: WatchedQuestion, said: { epoch: string; tick: number; cache: string }): void {
    const { epoch, tick, cache } = said;
    if (epoch !== this.#epoch || tick > this.#tick) return;
    const known = folders.map((folder) => this.#folders.get(folder));
    if (known.some((folder) => folder?.standing !== "sure" || folder.readyTick > tick)) return;
    this.#known.delete(path);
    this.#known.set(path, { cache, tick });
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MOST_CACHES) break;
      this.#known.delete(oldest);
    }
  }

  close(): void {
    for (const { watch } of this.#folders.values()) watch.close();
    this.#folders.clear();
    this.#known.clear();
    this.#cookies.close();
    this.#isOpen = false;
  }

  #since(path: string, asked: readonly Folder[]): Pick<Watched, "cache" | "places"> {
    const known = this.#known.get(path);
    const isCovered = known !== undefined && asked.every(({ readyTick }) => readyTick <= known.tick);
    const places: WatchedPlace[] = [];
    for (const { watch } of asked) {
      const changed = isCovered ? watch.changedSince(known.tick, MOST_CHANGED) : null;
      if (changed === null) break;
      places.push({ inode: watch.inode, changed });
    }
    return places.length === asked.length ? { cache: known!.cache, places } : { cache: null, places: [] };
  }

  get #watches(): number {
    return [...this.#folders.values()].reduce((sum, { watch }) => sum + watch.watches, 0);
  }

  #folderOf(path: string): Folder {
    const known = this.#folders.get(path);
    const isStale = known?.standing === "unsure" && performance.now() - known.sinceMs > TRY_AGAIN_MS;
    if (known !== undefined && !isStale) {
      this.#folders.delete(path);
      this.#folders.set(path, known);
      return known;
    }
    known?.watch.close();
    this.#folders.delete(path);
    for (const [other, { watch }] of this.#folders) {
      if (this.#folders.size < MOST_FOLDERS) break;
      watch.close();
      this.#folders.delete(other);
    }
    const folder = this.#newFolder(path);
    this.#folders.set(path, folder);
    void this.#build(path, folder);
    return folder;
  }

  #newFolder(path: string): Folder {
    const watch = new IssueFolderWatch({
      folder: path,
      tick: () => ++this.#tick,
      onEvent: () => this.#count(),
      takesOne: () => this.#watches < MOST_WATCHES,
      onLost: (why) => this.#giveUp(folder, why),
    });
    const folder: Folder = {
      watch,
      standing: "building",
      why: null,
      sinceMs: performance.now(),
      readyTick: Number.POSITIVE_INFINITY,
    };
    return folder;
  }

  async #build(path: string, folder: Folder): Promise<void> {
    try {
      const network = networkFileSystemName(path);
      if (network !== null) throw new Error(`${network} does not tell what others change`);
      this.#open();
      const epoch = this.#epoch;
      await folder.watch.open();
      if (!(await this.#cookies.passed()) || epoch !== this.#epoch) throw new Error("events were late");
      if (folder.standing !== "building") return;
      folder.readyTick = this.#tick;
      folder.standing = "sure";
    } catch (error) {
      this.#giveUp(folder, (error as Error).message);
    }
  }

  #open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#cookies.open(
      () => this.#count(),
      () => this.#forgetAll("the watch has failed"),
    );
  }

  #giveUp(folder: Folder, why: string): void {
    if (folder.standing === "unsure") return;
    folder.standing = "unsure";
    folder.why = why;
    folder.sinceMs = performance.now();
    folder.watch.close();
  }

  /**
   * The kernel drops events when its queue is full, and nobody is told. To be full it must hold that many, and all of these are
   * delivered in one go, for libuv reads until nothing is left: so if far fewer came in a row, none was lost. Far fewer, because
   * events of watches that others in this process have closed meanwhile are not counted.
   */
  #count(): void {
    if (this.#inARow === 0)
      setImmediate(() => {
        this.#inARow = 0;
      }).unref();
    this.#inARow++;
    if (this.#inARow > this.#queueLength! / 4) this.#forgetAll("too many changes at once");
  }

  #forgetAll(why: string): void {
    this.#epoch = randomHex(8);
    this.#known.clear();
    for (const folder of this.#folders.values()) {
      this.#giveUp(folder, why);
      // Nothing is wrong with the folder: the next one who asks begins anew.
      folder.sinceMs = Number.NEGATIVE_INFINITY;
    }
  }
}

/** Null on systems whose watches nobody has examined. */
function kernelQueueLength(): number | null {
  if (process.platform !== "linux") return null;
  try {
    const length = Number(fs.readFileSync("/proc/sys/fs/inotify/max_queued_events", "utf8"));
    return Number.isInteger(length) && length >= 1_024 ? length : null;
  } catch {
    return null;
  }
}
