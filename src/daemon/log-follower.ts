import type { Coordinator, LoggedEvent, Subscription } from "../coordinator/contract";
import { lastSequence } from "../coordinator/log-lines";
import type { Workspace } from "../coordinator/workspace";
import type { Platform } from "../platform/platform";
import { thisBuild } from "./build";
import { connectTo, type DaemonConnection } from "./connection";
import { type DaemonRecord, daemonPlace, readRecord } from "./place";
import { fromWire } from "./wire";

/** How long a daemon has to answer that it will tell, and how long the log may then grow without a word of the daemon's. */
const PATIENCE_MS = 1_000;
/** How often the log is looked at from outside, to notice a daemon that has gone quiet. */
const LOOK_EVERY_MS = 500;
/** When a daemon is asked again, or for the first time where there was none. */
const ASK_AGAIN_MS = 5_000;

export interface LogFollowerParts {
  readonly platform: Platform;
  /** Who reads the log where no daemon does. */
  readonly direct: Pick<Coordinator, "watch">;
  readonly log: string;
  /** Where the daemon is; null where there is none to ask. */
  find(): DaemonRecord | null;
  readonly patienceMs?: number;
}

/** The log from the line after `after` on: told by the daemon where one runs, else read here. */
export async function followLog(
  workspace: Workspace,
  listener: (event: LoggedEvent) => void,
  after: number,
): Promise<Subscription> {
  const { surroundings, coordinator, repository, store } = workspace;
  if ((surroundings.env["COTENANT_NO_DAEMON"] ?? "") !== "") return coordinator.watch(listener, after);
  const place = daemonPlace(repository.controlDir);
  const build = thisBuild();
  const follower = new LogFollower(
    {
      platform: surroundings.platform,
      direct: coordinator,
      log: store.layout.log,
      find: () => {
        const record = readRecord(place);
        return record?.build === build ? record : null;
      },
    },
    listener,
    after,
  );
  follower.start();
  return follower;
}

/**
 * Follows from its own position, whoever tells it: the daemon, or the files. Each of them tells every event after the position
 * that it was given, in order; so what is not beyond the position has been told, and nothing is told twice or left out,
 * also while one takes over from the other.
 */
export class LogFollower implements Subscription {
  readonly #parts: LogFollowerParts;
  readonly #listener: (event: LoggedEvent) => void;
  #last: number;
  #isOpen = true;
  #wake = () => {};
  #told: DaemonConnection | null = null;
  #direct: Subscription | null = null;

  constructor(parts: LogFollowerParts, listener: (event: LoggedEvent) => void, after: number) {
    this.#parts = parts;
    this.#listener = listener;
    this.#last = after;
  }

  get #patienceMs(): number {
    return this.#parts.patienceMs ?? PATIENCE_MS;
  }

  /** Who tells it now, for tests. */
  get source(): "daemon" | "files" | null {
    if (this.#told !== null) return "daemon";
    return this.#direct === null ? null : "files";
  }

  start(): void {
    void this.#follow();
  }

  close(): void {
    this.#isOpen = false;
    this.#wake();
    this.#told?.close();
    this.#direct?.close();
  }

  async #follow(): Promise<void> {
    while (this.#isOpen) {
      this.#told = await this.#ask();
      if (this.#told !== null) {
        this.#direct?.close();
        this.#direct = null;
        await this.#untilQuiet(this.#told);
        this.#told.close();
        this.#told = null;
      }
      if (!this.#isOpen) return;
      this.#direct ??= await this.#readFiles();
      if (!this.#isOpen) this.#direct?.close();
      await this.#sleep(ASK_AGAIN_MS);
    }
  }

  #tell(event: LoggedEvent): void {
    if (!this.#isOpen || event.sequence <= this.#last) return;
    this.#last = event.sequence;
    this.#listener(event);
  }

  /** Null where that does not go now: it is tried again. */
  async #readFiles(): Promise<Subscription | null> {
    try {
      return await this.#parts.direct.watch((event) => this.#tell(event), this.#last);
    } catch {
      return null;
    }
  }

  /** Null where nobody says that they will tell. */
  async #ask(): Promise<DaemonConnection | null> {
    const record = this.#parts.find();
    if (record === null) return null;
    const clockId = this.#parts.platform.clock.clockId();
    const greeting = { build: record.build, clockId };
    const connection = connectTo(record, greeting, this.#patienceMs, (method, params) => {
      if (method === "event") this.#tell(fromWire(params) as LoggedEvent);
    });
    try {
      await connection.call("watch", { after: this.#last }, this.#patienceMs);
      return connection;
    } catch {
      connection.close();
      return null;
    }
  }

  /**
   * A daemon that is stopped or stuck keeps its connection: that it has not told what stands at the log's end gives it away. A
   * checkpoint there is no event and nobody tells it; then the files are followed for a while, which does no harm.
   */
  async #untilQuiet(connection: DaemonConnection): Promise<void> {
    void connection.ended.then(() => this.#wake());
    const { clock } = this.#parts.platform;
    let known = "";
    let awaited: { readonly sequence: number; readonly sinceMs: number } | null = null;
    while (this.#isOpen && connection.isOpen) {
      await this.#sleep(LOOK_EVERY_MS);
      if (awaited !== null && this.#last >= awaited.sequence) awaited = null;
      if (awaited !== null && clock.monotonicMs() - awaited.sinceMs >= this.#patienceMs) return;
      if (awaited !== null) continue;
      const seen = await this.#lookAtEnd(known);
      known = seen.mark;
      if (seen.end > this.#last) awaited = { sequence: seen.end, sinceMs: clock.monotonicMs() };
    }
  }

  /** Where the log ends, if it is not as it was. What cannot be told is awaited in vain, and then read. */
  async #lookAtEnd(known: string): Promise<{ readonly mark: string; readonly end: number }> {
    const { platform, log } = this.#parts;
    try {
      const stat = await platform.files.stat(log);
      const mark = stat === null ? "" : `${stat.inode} ${stat.size}`;
      if (mark === known || stat === null) return { mark, end: 0 };
      return { mark, end: (await lastSequence(platform, log)) ?? Number.POSITIVE_INFINITY };
    } catch {
      return { mark: "", end: Number.POSITIVE_INFINITY };
    }
  }

  async #sleep(ms: number): Promise<void> {
    if (!this.#isOpen) return;
    const sleep = this.#parts.platform.timers.sleep(ms);
    this.#wake = sleep.wake;
    await sleep.done;
  }
}
