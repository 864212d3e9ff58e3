import * as fs from "node:fs";
import * as path from "node:path";

/** How long an event may take to come through. */
const WITHIN_MS = 1_000;

/**
 * The kernel queues an event when a file is written, and this process reads the queue when it gets to it. A file of our own, written
 * in a directory that is watched like the others, marks a place in that queue: once its event is here, all earlier ones are.
 */
export class Cookies {
  readonly #waiting = new Map<string, () => void>();
  #watcher: fs.FSWatcher | null = null;
  #next = 0;

  constructor(private readonly folder: string) {}

  /** Throws where there can be none. */
  open(onEvent: () => void, onLost: () => void): void {
    fs.rmSync(this.folder, { recursive: true, force: true });
    fs.mkdirSync(this.folder, { mode: 0o700 });
    this.#watcher = fs.watch(this.folder, { persistent: false }, (_, name) => {
      onEvent();
      if (name === null) return;
      this.#waiting.get(name)?.();
      this.#waiting.delete(name);
    });
    this.#watcher.on("error", onLost);
  }

  close(): void {
    this.#watcher?.close();
    this.#watcher = null;
    fs.rmSync(this.folder, { recursive: true, force: true });
  }

  /** True once everything that happened before this call has been heard of; false where that cannot be told in time. */
  async passed(): Promise<boolean> {
    const name = String(this.#next++);
    const file = path.join(this.folder, name);
    let timer: NodeJS.Timeout | undefined;
    try {
      const heard = new Promise<true>((resolve) => this.#waiting.set(name, () => resolve(true)));
      const late = new Promise<false>((resolve) => {
        timer = setTimeout(resolve, WITHIN_MS, false);
      });
      fs.writeFileSync(file, "", { flag: "wx", mode: 0o600 });
      return await Promise.race([heard, late]);
    } catch {
      return false;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(name);
      fs.rmSync(file, { force: true });
    }
  }
}
