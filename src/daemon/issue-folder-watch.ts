import * as fs from "node:fs";
import { basename } from "node:path";

/** Names of directories that can be issues. Nobody reads the others. */
const ISSUE_NAME = /^[0-9A-HJKMNP-TV-Z]{26}$/;
/** How many directories are taken in before others get their turn. */
const AT_ONCE = 200;

/** Names that are remembered, also of issues that are gone. */
const MOST_NAMES = 100_000;

export interface WatchParts {
  readonly folder: string;
  /** Another number each time: what has the higher one happened later. */
  tick(): number;
  /** Any event of any watch was delivered. */
  onEvent(): void;
  /** False when there are too many already. */
  takesOne(): boolean;
  /** From now on nothing can be said of this folder. */
  onLost(why: string): void;
}

/**
 * The directory with the issues of one worktree, and in it each issue's own: an editor that writes in place leaves no other trace.
 * Knows for every name when it last changed, since it has been watching.
 */
export class IssueFolderWatch {
  readonly #watchers = new Map<string, fs.FSWatcher>();
  /** Of directories that are gone, or were there before others of the same name. */
  #retired: fs.FSWatcher[] = [];
  readonly #changedAt = new Map<string, number>();
  /** Links lead to where nobody watches. */
  readonly #links = new Set<string>();
  #own: fs.FSWatcher | null = null;
  #isClosed = false;
  inode = 0;

  constructor(private readonly parts: WatchParts) {}

  get issues(): number {
    return this.#watchers.size;
  }

  get watches(): number {
    return this.#watchers.size + this.#retired.length + (this.#own === null ? 0 : 1);
  }

  /** Watches all that is there. What changes meanwhile is known of; what changed before is not. */
  async open(): Promise<void> {
    const { folder } = this.parts;
    const before = fs.lstatSync(folder);
    if (!before.isDirectory()) throw new Error("it is no directory");
    this.#own = this.#watch(folder, (name) => this.#entryChanged(name));
    const after = fs.lstatSync(folder);
    if (after.ino !== before.ino || after.dev !== before.dev) throw new Error("it was replaced");
    this.inode = after.ino;
    const names = fs.readdirSync(folder).filter((name) => ISSUE_NAME.test(name));
    for (let at = 0; at < names.length && !this.#isClosed; at += AT_ONCE) {
      for (const name of names.slice(at, at + AT_ONCE)) if (!this.#watchers.has(name)) this.#takeIn(name);
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (this.#isClosed) throw new Error("it was closed");
  }

  /** What may have changed after that tick, or at any time; null: too many to be named. */
  changedSince(tick: number, most: number): string[] | null {
    const changed = [...this.#links];
    for (const [name, at] of this.#changedAt) {
      if (at <= tick || this.#links.has(name)) continue;
      if (changed.length >= most) return null;
      changed.push(name);
    }
    return changed;
  }

  /** Every event up to now has been heard: no watch that was given up can have one left that is not counted. */
  tidy(): void {
    for (const watcher of this.#retired.splice(0)) watcher.close();
  }

  close(): void {
    this.#isClosed = true;
    this.#own?.close();
    this.#own = null;
    for (const watcher of [...this.#watchers.values(), ...this.#retired]) watcher.close();
    this.#watchers.clear();
    this.#retired = [];
  }

  #entryChanged(name: string | null): void {
    const { folder, onLost } = this.parts;
    if (name === null) onLost("the system does not say what has changed");
    // So it is called when the directory itself is moved, removed or unmounted; another may get its inode.
    else if (name === basename(folder)) onLost("it was moved or removed");
    else if (ISSUE_NAME.test(name)) this.#takeIn(name);
  }

  /**
   * A directory of that name has come, gone or been replaced. First it is watched, then it counts as changed: what was written in
   * between is in what the next one reads, who looks at it because of that.
   */
  #takeIn(name: string): void {
    const old = this.#watchers.get(name);
    if (old !== undefined) this.#retired.push(old);
    this.#watchers.delete(name);
    this.#links.delete(name);
    try {
      const path = `${this.parts.folder}/${name}`;
      const stat = fs.lstatSync(path, { throwIfNoEntry: false });
      if (stat?.isSymbolicLink() === true) this.#links.add(name);
      else if (stat?.isDirectory() === true) this.#watchIssue(name, path);
    } catch (error) {
      const { code = "", message } = error as NodeJS.ErrnoException;
      // It has gone in between: its end is heard of as well.
      if (code !== "ENOENT" && code !== "ENOTDIR") this.parts.onLost(message);
    }
    this.#touch(name);
  }

  #watchIssue(name: string, path: string): void {
    if (!this.parts.takesOne()) this.parts.onLost("there are too many issues");
    else
      this.#watchers.set(
        name,
        this.#watch(path, () => this.#touch(name)),
      );
  }

  #touch(name: string): void {
    if (this.#changedAt.size > MOST_NAMES) this.parts.onLost("too many issues have come and gone");
    else this.#changedAt.set(name, this.parts.tick());
  }

  #watch(path: string, notify: (name: string | null) => void): fs.FSWatcher {
    const watcher = fs.watch(path, { persistent: false }, (_, name) => {
      this.parts.onEvent();
      notify(name);
    });
    watcher.on("error", (error) => this.parts.onLost(error.message));
    return watcher;
  }
}
