import type { FolderWatcher, Watched, WatchedQuestion } from "../coordinator/watched";
import type { Workspace } from "../coordinator/workspace";
import { thisBuild } from "./build";
import { connectTo, type DaemonConnection } from "./connection";
import { daemonPlace, readRecord } from "./place";

/** How long the daemon has to answer. To look at thousands of files takes as long. */
const ANSWER_WITHIN_MS = 100;

/** Worth the wait: it saves the next command more. */
const TAKE_WITHIN_MS = 1_000;
/** When one is asked again that did not answer. */
const ASK_AGAIN_MS = 5_000;

/** Where no daemon runs that this process may ask, nobody is sure. */
export function daemonFolderWatcher(workspace: Workspace): Pick<FolderWatcher, "ask" | "tell"> {
  const place = daemonPlace(workspace.repository.controlDir);
  const { clock } = workspace.surroundings.platform;
  return new DaemonFolderWatcher(() => {
    const record = readRecord(place);
    if (record === null || record.build !== thisBuild()) return null;
    return connectTo(record, { build: record.build, clockId: clock.clockId() }, ANSWER_WITHIN_MS);
  });
}

/** Asks the daemon. If anything goes wrong, the answer is "unknown". */
class DaemonFolderWatcher implements Pick<FolderWatcher, "ask" | "tell"> {
  readonly #connect: () => DaemonConnection | null;
  #connection: DaemonConnection | null = null;
  #silentUntilMs = Number.NEGATIVE_INFINITY;

  constructor(connect: () => DaemonConnection | null) {
    this.#connect = connect;
  }

  async ask({ path, folders }: WatchedQuestion): Promise<Watched | null> {
    return (await this.#call("watched", { path, folders }, ANSWER_WITHIN_MS)) as Watched | null;
  }

  async tell({ path, folders }: WatchedQuestion, { epoch, tick }: Watched, cache: string): Promise<void> {
    await this.#call("watched_seen", { path, folders, epoch, tick, cache }, TAKE_WITHIN_MS);
  }

  async #call(method: string, params: object, withinMs: number): Promise<unknown> {
    if (performance.now() < this.#silentUntilMs) return null;
    if (this.#connection?.isOpen !== true) this.#connection = this.#connect();
    if (this.#connection === null) return null;
    try {
      return await this.#connection.call(method, params, withinMs);
    } catch {
      this.#silentUntilMs = performance.now() + ASK_AGAIN_MS;
      this.#connection.close();
      return null;
    }
  }
}
